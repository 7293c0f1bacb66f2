// Renews the overview every few seconds while someone looks at it. The page is complete without it.
"use strict";

const PAUSE_MS = 3000;
const overview = document.getElementById("overview");

async function renew() {
  if (document.hidden) return;
  const answer = await fetch("/partials/overview", { cache: "no-store" });
  overview.classList.toggle("stale", !answer.ok);
  if (answer.ok) overview.innerHTML = await answer.text();
}

function again() {
  renew()
    .catch(() => overview.classList.add("stale"))
    .finally(() => setTimeout(again, PAUSE_MS));
}

setTimeout(again, PAUSE_MS);
