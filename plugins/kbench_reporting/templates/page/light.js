addEventListener("beforeprint", () =>
  document.querySelectorAll("details.print").forEach(d => { unfold(d); d.open = true; }));
// A click or Enter on a method highlights it in every chart and table; again, or Escape, ends it.
const light = (() => {
  let lit = null;
  const of = element => element.dataset.m.split(" ");
  const marks = "svg [data-m], button.pick";
  const show = () => {
    document.body.classList.toggle("lit", lit !== null);
    for (const element of document.querySelectorAll("[data-m]")) {
      const on = of(element).includes(lit);
      element.classList.toggle("lit", on);
      if (element.matches(marks)) element.setAttribute("aria-pressed", on);
    }
    const main = document.getElementById("main");
    if (!main.tHead.rows[0].querySelector("[data-m]")) return;
    for (const row of main.tBodies[0].rows)
      [...row.cells].forEach((cell, i) => cell.classList.toggle("lit", i > 0 && String(i - 1) === lit));
  };
  const set = next => { lit = next; show(); changed(); };
  const press = element => {
    const numbers = of(element), next = numbers[(numbers.indexOf(lit) + 1) % (numbers.length + 1)];
    set(next === undefined || (numbers.length === 1 && lit === numbers[0]) ? null : next);
  };
  document.addEventListener("click", event => {
    if (event.target.closest("button:not(.pick), a, summary, select, input")) return;
    const element = event.target.closest("svg [data-m], tr[data-m], button.pick");
    if (element) press(element);
  });
  // of the points of a chart one is a stop of Tab; arrow keys move between them
  for (const svg of document.querySelectorAll("svg:has([data-m])")) {
    const points = [...svg.querySelectorAll("[data-m]")].sort((a, b) => of(a)[0] - of(b)[0]);
    points.forEach((point, i) => {
      const title = [...point.children].find(child => child.tagName === "title");
      point.setAttribute("role", "button"); point.setAttribute("aria-pressed", "false");
      point.setAttribute("tabindex", i ? "-1" : "0");
      point.setAttribute("aria-label", title ? title.textContent :
        [...point.querySelectorAll("text")].map(text => text.textContent).join(" "));
    });
    svg.addEventListener("keydown", event => {
      const i = points.indexOf(event.target);
      if (i < 0) return;
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); press(points[i]); }
      const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
      if (!step) return;
      event.preventDefault();
      const next = points[(i + step + points.length) % points.length];
      points[i].setAttribute("tabindex", "-1"); next.setAttribute("tabindex", "0"); next.focus();
    });
  }
  // the names in the leaderboard are buttons
  for (const row of document.querySelectorAll("#leaderboard tr[data-m]")) {
    const button = document.createElement("button"), cell = row.cells[1];
    button.type = "button"; button.className = "pick"; button.dataset.m = row.dataset.m;
    button.setAttribute("aria-pressed", "false");
    button.setAttribute("aria-label", cell.textContent + " + " + row.cells[2].textContent);
    button.append(...cell.childNodes); cell.append(button);
  }
  addEventListener("keydown", event => { if (event.key === "Escape" && lit !== null) set(null); });
  // tables that are unfolded later
  document.addEventListener("toggle", show, true);
  return {get: () => lit, set};
})();
