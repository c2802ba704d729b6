(() => {
  const missing = "–";
  // of an interval, 47.97 to 55.87, the first bound
  const read = (row, index) => {
    const cell = row.cells[index];
    const text = cell.textContent.trim().replace("−", "-");
    return cell.classList.contains("number") ? text.split(" ")[0] : text;
  };
  const compare = (left, right) => {
    const difference = Number(left) - Number(right);
    return Number.isNaN(difference) ? left.localeCompare(right, "en") : difference;
  };
  const sort = (table, index, direction) => {
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (row) => [read(row, index), row]);
    const known = rows.filter(([value]) => value !== missing);
    const rest = rows.filter(([value]) => value === missing);
    known.sort(([left], [right]) => direction * compare(left, right));
    body.append(...known.concat(rest).map(([, row]) => row));
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach((head, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const ascending = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        sort(table, index, ascending ? 1 : -1);
      });
    });
  }
})();
