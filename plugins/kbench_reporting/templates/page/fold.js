// Folded tables are built when they are first opened.
const unfold = details => {
  for (const template of details.querySelectorAll("template")) {
    template.replaceWith(template.content);
    for (const table of details.querySelectorAll("table.sortable")) sortable(table);
    for (const scroll of details.querySelectorAll(".scroll")) addTools(scroll);
  }
};
for (const details of document.querySelectorAll("details.later"))
  details.addEventListener("toggle", () => unfold(details));
