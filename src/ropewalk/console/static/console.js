// What a page does beyond what HTML does by itself: colours, times in the reader's zone, the keyboard, questions before what cannot be undone.
"use strict";
(() => {
  const root = document.documentElement;
  const kept = {
    get(name) { try { return localStorage.getItem(`ropewalk.${name}`); } catch { return null; } },
    set(name, value) { try { localStorage.setItem(`ropewalk.${name}`, value); } catch { /* not kept, then */ } },
  };

  // Colours: as the machine has them, light, dark.
  const THEMES = ["auto", "light", "dark"];
  const themeName = document.querySelector("[data-theme-name]");
  const showTheme = () => { if (themeName) themeName.textContent = { auto: "Auto", light: "Light", dark: "Dark" }[root.dataset.theme || "auto"]; };
  document.querySelector("[data-theme-switch]")?.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(root.dataset.theme || "auto") + 1) % THEMES.length];
    if (next === "auto") delete root.dataset.theme; else root.dataset.theme = next;
    kept.set("theme", next);
    showTheme();
    document.dispatchEvent(new Event("ropewalk:theme"));
  });
  showTheme();

  // Times in the reader's zone; what a machine reads stays in the attribute.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  const localise = (within) => {
    for (const each of within.querySelectorAll("time[datetime]")) {
      if (each.dataset.local) continue;
      const at = new Date(each.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      each.title = each.textContent;
      each.textContent = format.format(at);
      each.dataset.local = "yes";
    }
    for (const each of within.querySelectorAll("[data-zone]")) each.textContent = zone;
    for (const each of within.querySelectorAll("input[data-zone-offset]")) each.value = String(-new Date().getTimezoneOffset());
  };
  localise(document);
  document.addEventListener("htmx:afterSettle", () => localise(document));

  // A part that renews itself waits while somebody is in it, or the page is not seen.
  document.addEventListener("htmx:beforeRequest", (event) => {
    const part = event.detail.elt;
    if (!part.getAttribute("hx-trigger")?.startsWith("every")) return;
    const isUsed = part.contains(document.activeElement) || part.querySelector("details[open]") || part.contains(getSelection()?.anchorNode) && !getSelection().isCollapsed;
    if (document.hidden || isUsed) event.preventDefault();
  });

  // The keyboard. Keys count while nothing is being written, and can be turned off.
  const wanted = document.querySelector("[data-keys-switch]");
  if (wanted) {
    wanted.checked = kept.get("keys") !== "off";
    wanted.addEventListener("change", () => kept.set("keys", wanted.checked ? "on" : "off"));
  }
  let isGoing = false;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !wanted?.checked) return;
    if (event.target.closest("input, select, textarea, dialog[open]")) return;
    if (isGoing) {
      isGoing = false;
      const link = document.querySelector(`.side a[data-key="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); location.assign(link.href); }
    } else if (event.key === "g") {
      isGoing = true;
    } else if (event.key === "/") {
      const filter = document.querySelector("[data-filter]");
      if (filter) { event.preventDefault(); filter.focus(); filter.select(); }
    } else if (event.key === "?") {
      event.preventDefault();
      document.getElementById("keys").showModal();
    }
  });
  for (const each of document.querySelectorAll("[data-open]")) each.addEventListener("click", () => document.getElementById(each.dataset.open).showModal());

  // What is typed must be the name of what is to be deleted, before the button can be pressed.
  const guard = (form) => {
    const typed = form.querySelector("[data-must-be]");
    const button = form.querySelector("button");
    const look = () => { button.disabled = typed.value !== typed.dataset.mustBe; };
    typed.addEventListener("input", look);
    look();
  };
  for (const each of document.querySelectorAll("form[data-guarded]")) guard(each);

  // A question before something that goes on elsewhere is ended.
  document.addEventListener("submit", (event) => {
    const question = event.target.dataset.ask;
    if (question && !confirm(question)) event.preventDefault();
  });

  // All boxes of a table at once.
  for (const each of document.querySelectorAll("input[data-all]")) {
    each.addEventListener("change", () => {
      for (const box of document.querySelectorAll(`input[name="${CSS.escape(each.dataset.all)}"]`)) box.checked = each.checked;
    });
  }

  // To the clipboard.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    const said = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = said; }, 1500);
  });
})();
