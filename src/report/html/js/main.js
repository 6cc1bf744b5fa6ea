// Starts the page: unpacks what it carries, builds the sections, keeps the theme.

import { comparePage } from "./compare_page.js";
import { unpack } from "./decode.js";
import { el, refill } from "./dom.js";
import { redrawAll } from "./figure.js";
import { planPage } from "./plan_page.js";
import { searchPage } from "./search_page.js";

const KEY = "phaze-theme";

function start() {
  const content = JSON.parse(document.getElementById("content").textContent);
  const main = document.querySelector("main");
  themeSwitch();
  const pages = {
    search: () => searchPage(main, unpack(content.results[0])),
    compare: () => comparePage(main, content.results.map(unpack)),
    plan: () => planPage(main, content.plan),
  };
  const sections = pages[content.kind]();
  refill(
    document.querySelector("nav"),
    sections.map(([id, name]) => el("a", { href: `#${id}` }, name)),
  );
  // Folded parts would be missing on paper.
  window.addEventListener("beforeprint", () =>
    document.querySelectorAll("details.fold").forEach((part) => {
      part.open = true;
    }),
  );
}

/** Follows the system until the reader chooses; the choice is kept where the browser allows it. */
function themeSwitch() {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const kept = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null;
    }
  };
  const apply = (theme) => {
    document.documentElement.dataset.theme = theme;
    button.setAttribute("aria-pressed", String(theme === "dark"));
    redrawAll();
  };
  const button = document.getElementById("theme");
  button.addEventListener("click", () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      /* a private window: the choice lasts as long as the page */
    }
    apply(theme);
  });
  system.addEventListener("change", () => {
    if (!kept()) apply(system.matches ? "dark" : "light");
  });
  apply(kept() ?? (system.matches ? "dark" : "light"));
}

start();
