"use strict";
// The page shows one pair at a time. Keys and buttons call functions in `actions`. The server saves
// an action before it answers. Each answer contains the whole state, which `show` draws.

const element = (id) => document.getElementById(id);
const scale = document.body.dataset.scale;
const NAME = "paraloom-judge";
let judge = "";
let state = null;
let score = null;  // the score chosen for the current pair; null until the judge chooses a score

// ------------------------------------------------------------------ requests to the server

async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST", body: JSON.stringify(body), headers: {"Content-Type": "application/json"},
  };
  let response;
  try {
    response = await fetch(path, {...options, credentials: "omit"});
  } catch {
    throw new Error("No answer: the last action is not saved. Is paraloom judge still running? "
      + "If it was started again, open the address that it prints now.");
  }
  const found = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(`Not saved: ${found.error || response.status}`);
  return found;
}

const enter = async (name) => {
  const found = await ask(`state?judge=${encodeURIComponent(name)}`);
  judge = name;
  localStorage.setItem(NAME, judge);
  return found;
};

const send = async (path, key, values) => {
  try {
    return await ask(path, {judge, id: key.id, candidate: key.candidate, ...values});
  } catch (error) {
    // If the judge worked in another window in the meantime, show the server's state.
    const now = await ask(`state?judge=${encodeURIComponent(judge)}`).catch(() => null);
    if (now && JSON.stringify(now.last) !== JSON.stringify(state.last)) show(now);
    throw error;
  }
};

// ------------------------------------------------------------------ the page

function show(found, message = "") {
  state = found;
  const {pair, judged, skipped, total} = state;
  element("start").hidden = true;
  element("who").hidden = false;
  element("judge").textContent = judge;
  element("judging").hidden = pair === null;
  element("end").hidden = pair !== null;
  element("undo").disabled = element("end-undo").hidden = state.last === null;
  const done = judged + skipped;
  element("progress").value = total ? done / total : 1;
  if (pair === null) {
    element("end-count").textContent = `${judged} of ${total} pairs judged, ${skipped} skipped.`;
    element("end").focus();
    return;
  }
  element("count").textContent = `Pair ${done + 1} of ${total}`;
  for (const name of ["reference", "translation", "source"]) {
    element(name).textContent = pair[name];
  }
  setSource(false);
  setScore(found.undone ? found.undone.score : null);
  setFluency(found.undone ? found.undone.fluency : null);
  tell(message);
  element("pair").focus({preventScroll: true});
  window.scrollTo(0, 0);
}

function setScore(value) {
  score = value === null ? null : Math.min(100, Math.max(0, Math.round(value)));
  if (scale === "yes-no") return check("score", score);
  element("score").value = score ?? 50;
  element("value").textContent = score ?? "–";
  element("slider").classList.toggle("open", score === null);
  element("score").setAttribute("aria-valuetext", score === null ? "not chosen" : `${score}`);
}

function setFluency(value) {
  check("fluency", value);
}

function check(name, value) {
  for (const input of document.getElementsByName(name)) {
    input.checked = value !== null && Number(input.value) === value;
  }
}

function chosen(name) {
  const input = document.querySelector(`input[name="${name}"]:checked`);
  return input && Number(input.value);
}

function setSource(visible) {
  element("source").hidden = !visible;
  element("source-toggle").setAttribute("aria-expanded", visible);
}

function tell(message) {
  element("status").textContent = message;
}

function complain(message) {
  element("error").textContent = message;
}

function askName() {
  state = null;
  for (const id of ["judging", "end", "who"]) element(id).hidden = true;
  element("start").hidden = false;
  element("name").value = judge;
  element("name").focus();
}

// ------------------------------------------------------------------ the judge's actions

const actions = {
  async save() {
    if (state?.pair == null) return;
    const fluency = chosen("fluency");
    if (score === null) return missing("meaning", "First choose how much of the meaning both sentences have in common.");
    if (fluency === null) return missing("fluency", "First choose how the translation is written.");
    show(await send("judge", state.pair, {score, fluency}), "Saved.");
  },
  async skip() {
    if (state?.pair != null) {
      show(await send("judge", state.pair, {score: null, fluency: null}), "Skipped.");
    }
  },
  async undo() {
    if (state?.last != null) show(await send("undo", state.last), "Undone.");
  },
  source() {
    setSource(element("source").hidden);
    if (!element("source").hidden) tell(element("source").textContent);
  },
  help() {
    element("help").showModal();
  },
  score(value) {
    if (state?.pair == null) return;
    setScore(value);
    tell(scale === "yes-no" ? (value ? "Yes" : "No") : `${score}`);
  },
  fluency(value) {
    if (state?.pair == null) return;
    setFluency(value);
    tell(["Nonsense", "Understandable", "Fluent"][value]);
  },
};

function missing(id, message) {
  complain(message);
  element(id).querySelector("input").focus();
}

// Actions run one after the other. A key pressed during a save applies to the next pair.
let last = Promise.resolve();
function act(name, ...values) {
  last = last.then(async () => {
    complain("");
    try {
      await actions[name](...values);
    } catch (error) {
      complain(error.message);
    }
  });
}

function keyAction(event) {
  const {key} = event;
  if (event.ctrlKey || event.metaKey) return key.toLowerCase() === "z" && !event.shiftKey && ["undo"];
  if (event.altKey) return null;
  if (/^[0-9]$/.test(key) && scale !== "yes-no") return ["score", 10 * Number(key)];
  const kind = event.target.type;
  if (key === "ArrowLeft" || key === "ArrowRight") {
    if (scale === "yes-no" || kind === "radio" || kind === "range") return null;
    return ["score", (score ?? 50) + (key === "ArrowRight" ? 1 : -1)];
  }
  if (key === "Enter") return event.target.closest("button, a") ? null : ["save"];
  return {
    y: ["score", 100], n: ["score", 0], j: ["fluency", 0], k: ["fluency", 1], l: ["fluency", 2],
    s: ["skip"], u: ["undo"], o: ["source"], "?": ["help"],
  }[key.toLowerCase()];
}

document.addEventListener("keydown", (event) => {
  if (element("help").open || event.target.id === "name" || event.isComposing) return;
  const found = keyAction(event);
  if (!found) return;
  event.preventDefault();
  if (!event.repeat || event.key.startsWith("Arrow")) act(...found);
});

element("judging").addEventListener("submit", (event) => {
  event.preventDefault();
  act("save");
});
element("start").addEventListener("submit", async (event) => {
  event.preventDefault();
  complain("");
  try {
    show(await enter(element("name").value.trim()));
  } catch (error) {
    complain(error.message);
  }
});
for (const [id, name] of [
  ["skip", "skip"], ["undo", "undo"], ["end-undo", "undo"], ["source-toggle", "source"],
  ["help-open", "help"],
]) {
  element(id).addEventListener("click", () => act(name));
}
element("change").addEventListener("click", askName);
if (scale === "yes-no") {
  for (const input of document.getElementsByName("score")) {
    input.addEventListener("change", () => setScore(Number(input.value)));
  }
} else {
  // A tap in the middle of the slider chooses 50, although the value of the slider does not change.
  for (const name of ["input", "pointerup"]) {
    element("score").addEventListener(name, () => setScore(Number(element("score").value)));
  }
}

(async () => {
  judge = document.body.dataset.judge || localStorage.getItem(NAME) || "";
  if (!judge) return askName();
  try {
    show(await enter(judge));
  } catch (error) {
    complain(error.message);
    askName();
  }
})();
