// What the reader chose is in the fragment of the address, behind a question mark.
(() => {
  const inputs = [...document.querySelectorAll("input[id], select[id]")];
  const tables = () => [...document.querySelectorAll("table.sortable[id]")];
  const methods = JSON.parse(document.getElementById("data").textContent).methods;
  const first = new Map(inputs.map(input => [input, input.value]));
  const isBox = input => input.type === "checkbox";
  const written = () => {
    const state = new URLSearchParams();
    for (const input of inputs) {
      if (isBox(input)) {
        if (input.checked !== input.defaultChecked) state.set(input.id, input.checked ? "1" : "0");
      } else if (input.value !== first.get(input)) {
        const option = input.selectedOptions ? input.selectedOptions[0] : null;
        state.set(input.id, option ? option.textContent : input.value);
      }
    }
    for (const table of tables()) {
      const at = [...table.tHead.rows[0].cells].findIndex(cell => cell.hasAttribute("aria-sort"));
      if (at >= 0) state.set("sort-" + table.id,
        at + (table.tHead.rows[0].cells[at].ariaSort === "ascending" ? "u" : "d"));
    }
    if (light.get() !== null && methods[light.get()] !== undefined) state.set("lit", methods[light.get()]);
    else if (light.get() === null && document.getElementById("focus")) state.set("lit", "");
    return state.toString();
  };
  const read = () => {
    let hash = "";
    try { hash = location.hash.slice(1); } catch { return ["", new URLSearchParams()]; }
    const at = hash.indexOf("?");
    return at < 0 ? [hash, new URLSearchParams()] :
      [hash.slice(0, at), new URLSearchParams(hash.slice(at + 1))];
  };
  let restoring = false, last = "";
  const write = () => {
    if (restoring) return;
    const state = written();
    const now = "#" + read()[0] + (state ? "?" + state : "");
    if (now === last) return;
    last = now;
    // a sandboxed frame may have no history, and browsers limit how often it changes
    try { history.replaceState(null, "", now); } catch { /* the page works without */ }
  };
  const restore = () => {
    const [anchor, state] = read();
    const chosen = state.get("lit"), focus = document.getElementById("focus");
    if (methods.includes(chosen)) light.set(String(methods.indexOf(chosen)));
    else if (chosen === null && focus) light.set(focus.dataset.focus);
    for (const input of inputs) {
      const value = state.get(input.id);
      if (value === null) continue;
      if (isBox(input)) {
        input.checked = value === "1"; input.dispatchEvent(new Event("change"));
      } else if (input.options) {
        const option = [...input.options].find(each => each.textContent === value);
        if (option) { input.value = option.value; input.dispatchEvent(new Event("change")); }
      } else {
        input.value = value; input.dispatchEvent(new Event("input"));
      }
    }
    for (const table of tables()) {
      const found = /^(\d{1,4})([ud])$/.exec(state.get("sort-" + table.id) || "");
      const head = found && table.tHead.rows[0].cells[Number(found[1])];
      const button = head && head.querySelector("button.sort");
      if (!button) continue;
      button.click();
      if (found[2] === "d") button.click();
    }
    const target = anchor && state.toString() && document.getElementById(anchor);
    if (target) target.scrollIntoView();
  };
  restoring = true; restore(); restoring = false;
  document.addEventListener("kbench:changed", write);
  for (const input of inputs) input.addEventListener("change", write);
  addEventListener("hashchange", () => { last = ""; if (!location.hash.includes("?")) write(); });
})();
