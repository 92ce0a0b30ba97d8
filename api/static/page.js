// Keeps what is marked `data-live` fresh: fetches the page again and puts the new parts in the place of the old ones.
// A page that is not looked at, or in which someone selects text or has opened or closed details, is left alone.
"use strict";

const SECONDS = 5;

const TOUCHED = "details[open]:not([data-shown]), details[data-shown]:not([open])";

function busy() {
  const selected = document.getSelection();
  return document.hidden || (selected && !selected.isCollapsed) || document.querySelector(TOUCHED);
}

// Whoever goes through the page with the keyboard stays where they are.
function renew(old, fresh) {
  const focused = old.contains(document.activeElement) ? document.activeElement.outerHTML : null;
  old.replaceChildren(...fresh.childNodes);
  const same = [...old.querySelectorAll("a, summary, [tabindex]")].find((each) => each.outerHTML === focused);
  if (same) same.focus({ preventScroll: true });
}

async function refresh() {
  if (busy()) return;
  try {
    const response = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
    if (!response.ok) throw new Error(String(response.status));
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    const news = fresh.querySelectorAll("[data-live]");
    if (busy()) return;
    document.querySelectorAll("[data-live]").forEach((old, number) => {
      if (news[number] && old.innerHTML !== news[number].innerHTML) renew(old, news[number]);
    });
    document.documentElement.classList.remove("stale");
  } catch {
    document.documentElement.classList.add("stale");
  }
}

document.documentElement.classList.add("live");
setInterval(refresh, SECONDS * 1000);
document.addEventListener("visibilitychange", refresh);
