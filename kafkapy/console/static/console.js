// The console's own script. Every page can be read without it.
"use strict";

// A page that searches or tails keeps loading. Its button to stop is shown until then; this script runs in the head.
const root = document.documentElement;
root.classList.add("loading");
window.addEventListener("load", () => root.classList.remove("loading"));
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-stop]")) {
    window.stop();
    root.classList.remove("loading");
  }
});

// A form that changes something is sent once.
document.addEventListener("submit", (event) => {
  if (event.target.method === "post") {
    event.target.querySelectorAll("button").forEach((each) => setTimeout(() => (each.disabled = true)));
  }
});

// A background refresh must not replace the part in which the user has the focus or a selection.
document.addEventListener("htmx:beforeSwap", (event) => {
  const selection = window.getSelection();
  const isSelecting = selection && !selection.isCollapsed && event.target.contains(selection.anchorNode);
  if (document.hidden || isSelecting || event.detail.xhr.responseURL.includes("/login")) {
    event.detail.shouldSwap = false;
  }
});
