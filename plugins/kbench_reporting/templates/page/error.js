// Shares as logarithmic errors.
(() => {
  const box = document.getElementById("as-error");
  if (!box) return;
  const draw = () => {
    for (const error of document.querySelectorAll("figure > .error")) {
      error.hidden = !box.checked;
      error.parentElement.querySelector(".plain").hidden = box.checked;
    }
  };
  box.addEventListener("change", () => { draw(); changed(); }); draw();
})();
