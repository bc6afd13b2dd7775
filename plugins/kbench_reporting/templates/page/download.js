// Each table as CSV and LaTeX, each chart as SVG and, by its table, as CSV.
const textOf = cell => {
  const copy = cell.cloneNode(true);
  for (const fold of copy.querySelectorAll("details")) fold.remove();
  for (const br of copy.querySelectorAll("br")) br.replaceWith(" ");
  return copy.textContent.replace(/\s+/g, " ").trim();
};
const shownRows = table => [...table.rows].filter(row => !row.hidden)
  .map(row => [...row.cells].filter(cell => !cell.hidden));
const asCsv = table => {
  // a text that a spreadsheet would run as a formula is quoted
  const written = text => {
    const risky = /^\s*[=+\-@|]/.test(text) || /^[\t\r\n]/.test(text);
    const isNumber = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text);
    const safe = risky && !isNumber ? "'" + text : text;
    return /[",\n]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
  };
  const value = cell => cell.dataset.v !== undefined ? cell.dataset.v : textOf(cell);
  return shownRows(table).map(row => row.map(value).map(written).join(",")).join("\n") + "\n";
};
const asLatex = table => {
  const special = {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}",
    "<": "\\textless{}", ">": "\\textgreater{}", "|": "\\textbar{}", '"': "\\textquotedbl{}",
    "−": "\\ensuremath{-}", "±": "\\ensuremath{\\pm}", "µ": "\\ensuremath{\\mu}",
    "≈": "\\ensuremath{\\approx}"};
  const escaped = text => text.replace(/[&%$#_{}]/g, "\0$&")
    .replace(/[\\~^<>|"−±µ≈]/g, sign => special[sign]).replaceAll("\0", "\\");
  const [head, ...body] = shownRows(table);
  // LaTeX would read a bracket behind \\ as its argument
  const line = row => row.map((cell, i) => {
    const text = escaped(textOf(cell)), best = cell.classList.contains("best");
    const safe = i === 0 && /^[[*]/.test(text) ? "{}" + text : text;
    return best && text ? "\\textbf{" + safe + "}" : safe;
  }).join(" & ") + " \\\\";
  return ["% needs \\usepackage{booktabs} and, for quotation marks, \\usepackage[T1]{fontenc}",
    "\\begin{tabular}{" + head.map(cell => cell.classList.contains("n") ? "r" : "l").join("") + "}",
    "\\toprule", line(head), "\\midrule", ...body.map(line), "\\bottomrule", "\\end{tabular}", ""].join("\n");
};
const asSvg = svg => {
  const copy = svg.cloneNode(true), style = document.createElementNS(svg.namespaceURI, "style");
  const colours = [...getComputedStyle(document.documentElement)].filter(name => name.startsWith("--"));
  const rules = [...document.styleSheets[0].cssRules].map(rule => rule.cssText)
    .filter(text => /^svg[ {.]/.test(text)).map(text => text.replace(/^svg \{/, ":root {"));
  const now = getComputedStyle(document.documentElement);
  const values = [...document.styleSheets[0].cssRules].filter(rule => rule.selectorText === ":root")
    .flatMap(rule => [...rule.style]).filter(name => name.startsWith("--"))
    .map(name => name + ":" + now.getPropertyValue(name));
  style.textContent = ":root{" + [...new Set([...colours.map(n => n + ":" + now.getPropertyValue(n)), ...values])].join(";") +
    ";background:var(--paper)}" + rules.join("");
  for (const lit of copy.querySelectorAll(".lit")) lit.classList.remove("lit");
  copy.prepend(style);
  return '<?xml version="1.0" encoding="UTF-8"?>\n' + new XMLSerializer().serializeToString(copy) + "\n";
};
const save = (text, name, type) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], {type}));
  link.download = name; link.click();
  URL.revokeObjectURL(link.href);
};
const tool = (label, what, press) => {
  const button = document.createElement("button");
  button.type = "button"; button.className = "save"; button.textContent = label;
  button.setAttribute("aria-label", label + " of: " + what);
  button.addEventListener("click", press);
  return button;
};
const forms = (what, table) => [
  tool("CSV", what, () => save(asCsv(table()), table().dataset.name + ".csv", "text/csv")),
  tool("LaTeX", what, () => save(asLatex(table()), table().dataset.name + ".tex", "application/x-tex")),
];
const toolbar = (before, buttons) => {
  const bar = document.createElement("div");
  bar.className = "tools screen"; bar.append(...buttons); before.before(bar);
};
const addTools = scroll => {
  const table = scroll.querySelector("table[data-name]");
  if (table && !scroll.closest("figure, template"))
    toolbar(scroll, forms(scroll.getAttribute("aria-label"), () => table));
};
for (const scroll of document.querySelectorAll(".scroll")) addTools(scroll);
for (const svg of document.querySelectorAll(".scroll > svg.cd")) {
  toolbar(svg.parentElement, [tool("SVG", "rank diagram",
    () => save(asSvg(svg), "ranks.svg", "image/svg+xml"))]);
}
for (const details of document.querySelectorAll("figure > details.data")) {
  const figure = details.parentElement, caption = figure.querySelector("figcaption");
  const what = caption ? caption.textContent : "hyperparameter search";
  const picture = () => figure.querySelector(".scroll:not([hidden]) svg");
  const buttons = [tool("SVG", what, () => save(asSvg(picture()), "chart.svg", "image/svg+xml"))];
  const table = () => { unfold(details); return details.querySelector("table"); };
  toolbar(details, [...forms(what, table), ...buttons]);
}
