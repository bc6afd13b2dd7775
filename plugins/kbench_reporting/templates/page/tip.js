// The numbers of a point at the pointer, at once.
(() => {
  const tip = document.createElement("div");
  tip.className = "tip"; tip.hidden = true; tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);
  document.addEventListener("pointerover", event => {
    const shape = event.target.closest("svg g");
    const title = shape && [...shape.children].find(child => child.tagName === "title");
    tip.hidden = !title;
    if (!title) return;
    tip.textContent = title.textContent;
    const {clientX: x, clientY: y} = event, {offsetWidth: wide, offsetHeight: tall} = tip;
    tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - wide - 6)) + "px";
    tip.style.top = (y + 18 + tall > innerHeight ? y - tall - 10 : y + 18) + "px";
  });
})();
