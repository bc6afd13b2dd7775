// Numbers of any size, as `kbench.report.text.format_number` writes them.
const ofAnySize = v => {
  const size = Math.abs(v);
  if (size === 0 || (size >= 0.001 && size < 10)) return v.toFixed(4);
  if (size >= 1e9 || size < 1e-4) return v.toExponential(3).replace(/e([+-])(\d)$/, "e$10$2");
  return v.toFixed(Math.max(0, (size >= 10 ? 4 : 3) - Math.floor(Math.log10(size))));
};
