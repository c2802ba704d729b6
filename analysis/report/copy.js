(() => {
  const copyByHand = (text) => {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  };
  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // not every browser gives a page from a file the clipboard
      return copyByHand(text);
    }
  };
  for (const box of document.querySelectorAll(".command")) {
    const block = box.querySelector("pre");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy: ${block.getAttribute("aria-label")}`);
    const state = document.createElement("span");
    state.className = "unseen";
    state.setAttribute("role", "status");
    box.append(button, state);
    button.addEventListener("click", async () => {
      const done = await copy(block.textContent.trimEnd());
      button.focus();
      button.textContent = done ? "Copied" : "Not copied";
      state.textContent = button.textContent;
      setTimeout(() => {
        button.textContent = "Copy";
        state.textContent = "";
      }, 2000);
    });
  }
})();
