(() => {
  // A link into a folded section opens it, and so does printing.
  const open = (element) => {
    for (let at = element; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  };
  const follow = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    open(target.closest("summary") ? target.closest("details") : target);
    target.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(open));
  if (location.hash) follow();
})();
