(() => {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);

  // All points of the seed, in all figures.
  const mark = (point) => {
    for (const each of document.querySelectorAll(".points a.same")) each.classList.remove("same");
    if (!point?.dataset.seed) return;
    const same = document.querySelectorAll(`.points a[data-seed="${point.dataset.seed}"]`);
    for (const each of same) each.classList.add("same");
  };
  const show = (point) => {
    mark(point);
    tip.textContent = point.getAttribute("aria-label");
    tip.hidden = false;
    const at = point.getBoundingClientRect();
    const left = at.left + at.width / 2 - tip.offsetWidth / 2;
    const most = document.documentElement.clientWidth - tip.offsetWidth - 8;
    const above = at.top - tip.offsetHeight - 6;
    tip.style.left = `${Math.max(8, Math.min(left, most)) + scrollX}px`;
    tip.style.top = `${(above < 4 ? at.bottom + 6 : above) + scrollY}px`;
  };
  const hide = () => { tip.hidden = true; mark(null); };

  // The browser's own tip would stand beside this one.
  const takeTitle = (element) => {
    const title = element.querySelector(":scope > title");
    if (!title) return;
    element.setAttribute("aria-label", title.textContent);
    element.removeAttribute("aria-labelledby");
    title.remove();
  };

  for (const drawing of document.querySelectorAll(".drawing svg")) {
    takeTitle(drawing);
    const points = Array.from(drawing.querySelectorAll(".points a"));
    points.sort((one, other) => one.lastChild.cx.baseVal.value - other.lastChild.cx.baseVal.value);
    // One stop of the Tab key for a figure; the arrow keys go from point to point.
    const select = (point) => {
      for (const each of points) each.setAttribute("tabindex", each === point ? "0" : "-1");
    };
    points.forEach((point, index) => {
      takeTitle(point);
      point.addEventListener("mouseenter", () => show(point));
      point.addEventListener("mouseleave", hide);
      point.addEventListener("focus", () => { select(point); show(point); });
      point.addEventListener("blur", hide);
      point.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (event.key === "Escape") hide();
        if (!step) return;
        event.preventDefault();
        points[(index + step + points.length) % points.length].focus();
      });
    });
    if (points.length) select(points[0]);
  }
})();
