(() => {
  const condition = /^(.+?)(<=|>=|=|<|>)(.*)$/;
  const compare = {
    "=": (cell, value) => cell === value || (value !== "" && Number(cell) === Number(value)),
    "<": (cell, value) => Number(cell) < Number(value),
    ">": (cell, value) => Number(cell) > Number(value),
    "<=": (cell, value) => Number(cell) <= Number(value),
    ">=": (cell, value) => Number(cell) >= Number(value),
  };
  const makeTest = (term, heads) => {
    const parts = condition.exec(term);
    if (parts) {
      const [, name, sign, value] = parts;
      const index = heads.findIndex((head) => head === name || head.startsWith(`${name} `));
      if (index >= 0) {
        return (row) => compare[sign](row.cells[index].textContent.trim().replace("−", "-").toLowerCase(), value);
      }
    }
    return (row) => row.textContent.toLowerCase().includes(term);
  };
  let place = 0;
  for (const table of document.querySelectorAll("table.sortable")) {
    const rows = Array.from(table.tBodies[0].rows);
    if (rows.length < 2) {
      continue;
    }
    const heads = Array.from(table.tHead.rows[0].cells, (cell) =>
      cell.textContent.trim().toLowerCase(),
    );
    place += 1;
    const line = document.createElement("p");
    line.className = "filter";
    const label = document.createElement("label");
    const input = document.createElement("input");
    input.type = "search";
    input.id = `filter-${place}`;
    input.autocomplete = "off";
    label.htmlFor = input.id;
    label.textContent = "Filter rows";
    // a condition that holds for the first row
    const known = heads.findIndex((head, index) => !/\s/.test(head + rows[0].cells[index].textContent.trim()));
    const value = known < 0 ? "" : rows[0].cells[known].textContent.trim();
    const example = heads.includes("score") ? "score>30" : `${heads[known]}=${value}`;
    input.placeholder = known < 0 ? "words" : `words, or a condition such as ${example}`;
    const state = document.createElement("span");
    state.setAttribute("role", "status");
    line.append(label, input, state);
    table.closest(".box").before(line);
    const show = () => {
      const terms = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      const tests = terms.map((term) => makeTest(term, heads));
      let shown = 0;
      for (const row of rows) {
        row.hidden = !tests.every((test) => test(row));
        shown += row.hidden ? 0 : 1;
      }
      state.textContent = terms.length ? `${shown} of ${rows.length} rows` : "";
    };
    input.addEventListener("input", show);
    // a link to a row that the filter hides shows it again
    addEventListener("hashchange", () => {
      const row = document.getElementById(location.hash.slice(1));
      if (row && row.hidden) {
        input.value = "";
        show();
        row.scrollIntoView();
      }
    });
  }
})();
