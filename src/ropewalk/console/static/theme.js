// Before anything is drawn: the colours that the reader chose, or those of the machine.
"use strict";
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem("ropewalk.theme"); } catch { /* a browser that keeps nothing follows the machine */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
