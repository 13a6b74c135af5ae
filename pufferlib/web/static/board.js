// The board: reads the answers of pufferlib/web/board.py, or the same answers as files of an export, and draws them.

import { Chart, colorOf, duration, short } from "./charts.js";
import { Parallel } from "./parallel.js";

const POLL_MS = 1000;
const CHOSEN_LINES = 8; // lines that are shown until the user chooses
const MOST_IDS = 500; // runs of a request, whose address has a limit of 8 kB
const $ = (id) => document.getElementById(id);

// What the server knows
let board = { id: "", version: -1, sections: [], metrics: [], sweeps: [], leagues: [] };
const curves = new Map(); // by metric: {version, asked: ids of runs, byRun: curves by id}
// What the user chooses, which the address keeps
const DEFAULTS = {
  runs: null, // set of paths of runs. null shows the latest
  metrics: null, // one for each chart. null shows the score, or in self-play the rating
  x: "steps",
  smoothing: 5, // percent of the points
  seeds: true, // combine the seeds of equal runs
  log: false,
  open: "", // "run PATH", "sweep NAME", "league NAME" or "machine"
  find: "",
  sort: "started",
  up: false, // ascending
};
const view = { ...DEFAULTS };
const unfolded = new Set(), closed = new Set(); // groups with their runs shown, and sections without theirs
const numbers = new Map(); // number of each line, which decides its color
const panels = new Map(); // charts by metric and section

// Text

const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const safe = (text) => String(text).replace(/[&<>"']/g, (character) => escapes[character]);
class Html { constructor(text) { this.text = text; } }

/** Tag of templates that escapes their values, except those that are HTML or lists of HTML themselves. */
function html(strings, ...values) {
  const one = (value) => value instanceof Html ? value.text : Array.isArray(value) ? value.map(one).join("") : safe(value ?? "");
  return new Html(strings.reduce((text, part, i) => text + one(values[i - 1]) + part));
}

const plural = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
const valueText = (value) => value === null || value === undefined ? "unset" : typeof value === "number" && !Number.isInteger(value) ? String(Number(value.toPrecision(6))) : String(value);

// Answers of the server

/** Return an answer, or throw an error whose message tells the user what to do. */
async function ask(name, query = {}) {
  let reply;
  try {
    reply = await fetch(`data/${name}.json?${new URLSearchParams(query)}`);
  } catch {
    throw new Error("The board does not answer. Start it again: puffer board. This page then continues by itself.");
  }
  if (reply.status === 403) throw new Error("The token is wrong or missing. Open the address that the terminal shows.");
  if (!reply.ok) throw new Error((await reply.text()).slice(0, 500) || `${name}: ${reply.status}`);
  return reply.json();
}

/** Read the list of runs, and the curves that are shown. Return true if some of their files are not yet read. */
async function refresh() {
  let answer = await ask("runs", { since: board.version });
  if (board.id && answer.id !== board.id) { // of a board that was started meanwhile, with other numbers of runs
    curves.clear();
    answer = await ask("runs");
  }
  const isNew = answer.id !== board.id || answer.version !== board.version;
  if (isNew) {
    board = answer;
    drawTable();
    if (isLive(opened)) drawDetails();
  }
  const shares = await Promise.all([...new Set(chosenSections().flatMap(metricsOf))].map(readCurves));
  if (isNew || shares.some((share) => share !== null)) drawPanels();
  return shares.some((share) => share !== null && share < 1);
}

/** Read the curves of a metric that are missing or have changed. Return the share that is read, or null if none has. */
async function readCurves(metric) {
  const number = board.metrics.indexOf(metric);
  if (number < 0) return null;
  if (!curves.has(metric)) curves.set(metric, { version: -1, asked: new Set(), byRun: new Map(), share: 1 });
  const known = curves.get(metric);
  const wanted = chosenRuns().map((run) => run.id);
  const missing = wanted.filter((id) => !known.asked.has(id)), asked = wanted.filter((id) => known.asked.has(id));
  if (!board.live && !missing.length) return null;
  let isNew = false;
  // Versions count all changes, so curves that were never asked for are a request of their own.
  for (const [ids, since] of [[asked, known.version], [missing, -1]]) {
    if (!ids.length) continue;
    let version = Infinity, share = 1;
    for (let at = 0; at < ids.length; at += MOST_IDS) {
      const part = ids.slice(at, at + MOST_IDS);
      const answer = await ask(`curves/${number}`, { runs: part.join(","), since });
      version = Math.min(version, answer.version);
      share = Math.min(share, answer.share);
      for (const id of part) known.asked.add(id);
      for (const [id, curve] of Object.entries(answer.curves)) {
        known.byRun.set(Number(id), curve);
        isNew = true;
      }
    }
    if (since >= 0 || !asked.length) known.version = version;
    if (known.share !== share) isNew = true;
    known.share = share;
  }
  return isNew ? known.share : null;
}

async function poll() {
  let delay = POLL_MS;
  try {
    if (await refresh()) delay = 50;
    if (board.live) await readLoad();
    showProblem("");
  } catch (error) {
    showProblem(error.message);
    if (error.stack && !(error.message.endsWith("."))) console.error(error);
    delay = 2 * POLL_MS;
  }
  if (board.live !== false) setTimeout(poll, delay);
}

function showProblem(text) {
  const problem = $("problem");
  problem.hidden = !text;
  if (problem.textContent !== text) problem.textContent = text;
}

// Runs

const allGroups = () => board.sections.flatMap((section) => section.groups.map((group) => ({ section, group })));

let latest = {}; // paths of the latest runs, and what they were found for

/** Return the paths of the runs that are shown. */
function chosenPaths() {
  if (view.runs) return view.runs;
  const { find, sort, up } = view;
  if (latest.board !== board || latest.find !== find || latest.sort !== sort || latest.up !== up) {
    const groups = board.sections.map(sorted).find((found) => found.length)?.slice(0, CHOSEN_LINES) ?? [];
    latest = { board, find, sort, up, paths: new Set(groups.flatMap((group) => group.runs.map((run) => run.path))) };
  }
  return latest.paths;
}

function chosenSections() {
  const paths = chosenPaths();
  return board.sections.filter((section) => section.groups.some((group) => group.runs.some((run) => paths.has(run.path))));
}

const metricsOf = (section) => view.metrics ?? [section.metric];

function chosenRuns() {
  const paths = chosenPaths();
  return board.sections.flatMap((section) => section.groups.flatMap((group) => group.runs.filter((run) => paths.has(run.path))));
}

const valuesOf = (section, run) => Object.fromEntries(section.settings.flatMap(({ name, short }, i) => [[name, run.settings[i]], [short, run.settings[i]]]));

/** Return whether a run has all words of the filter: parts of its names, "state:running" or "score>10". */
function isFound(section, group, run) {
  const text = [section.title, group.label, run.title, run.name, run.state, ...run.tags].join(" ").toLowerCase();
  return view.find.toLowerCase().split(/\s+/).filter(Boolean).every((word) => {
    const [, name, operator, value] = word.match(/^([\w./-]+)(<=|>=|<|>|=|:)(.+)$/) ?? [];
    if (!name) return text.includes(word);
    const known = { ...valuesOf(section, run), env: section.title, tag: run.tags.join(" "), state: run.state, name: run.name,
      score: run.score, steps: run.steps, time: run.train_s };
    if (!(name in known)) return false;
    const own = known[name], number = Number(value);
    if (operator === ":") return String(own).toLowerCase().includes(value);
    if (operator === "=") return String(own).toLowerCase() === value || Number(own) === number;
    return own !== null && { "<": own < number, ">": own > number, "<=": own <= number, ">=": own >= number }[operator];
  });
}

/** Return the groups of a section with only the runs that the filter finds, in the order that the user chose. */
function sorted(section) {
  const groups = section.groups
    .map((group) => ({ ...group, runs: group.runs.filter((run) => isFound(section, group, run)) }))
    .filter((group) => group.runs.length);
  const keys = {
    name: (group) => group.label, state: (group) => group.runs[0].state, score: (group) => group.score,
    steps: (group) => Math.max(...group.runs.map((run) => run.steps)),
    time: (group) => Math.max(...group.runs.map((run) => run.train_s)),
    started: (group) => Math.max(...group.runs.map((run) => run.started)),
  };
  const column = section.settings.findIndex(({ name }) => name === view.sort);
  const key = column >= 0 ? (group) => group.runs[0].settings[column] : keys[view.sort] ?? keys.started;
  const order = (a, b) => typeof a === "string" || typeof b === "string" ? String(a).localeCompare(String(b), undefined, { numeric: true }) : a - b;
  return groups.sort((one, other) => {
    const [a, b] = [key(one), key(other)];
    if (a === null || b === null) return (a === null) - (b === null); // unknown values come last
    return view.up ? order(a, b) : order(b, a);
  });
}

/** Return the number of a line, which stays the same as long as the page is open. */
function numberOf(key) {
  if (!numbers.has(key)) numbers.set(key, numbers.size);
  return numbers.get(key);
}

/** Return the lines of a section: for each group, or each run if seeds are not combined. */
function linesOf(section, metric) {
  const paths = chosenPaths(), known = curves.get(metric)?.byRun ?? new Map(), lines = [];
  for (const group of section.groups) {
    const runs = group.runs.filter((run) => paths.has(run.path));
    const parts = view.seeds ? [runs] : runs.map((run) => [run]);
    for (const members of parts.filter((part) => part.length)) {
      const isWhole = view.seeds && group.runs.length > 1;
      const key = isWhole ? `${sectionKey(section)} ${group.label}` : members[0].path;
      const seeds = isWhole ? `, ${plural(members.length, "seed")}` : group.runs.length > 1 ? `, ${members[0].title.split("/").pop()}` : "";
      lines.push({ label: group.label + seeds, number: numberOf(key), curves: members.map((run) => known.get(run.id)).filter(Boolean), members });
    }
  }
  return lines;
}

// Table

const HEADS = [["name", "run"], ["state", "state"], ["score", "score"], ["steps", "steps"], ["time", "time"], ["started", "started"]];

function drawTable() {
  $("folder").textContent = board.folder;
  document.title = `${board.folder.split("/").pop()} – board`;
  const running = allGroups().flatMap(({ group }) => group.runs).filter((run) => run.state === "running").length;
  $("live").textContent = !board.live ? "exported" : running ? `${plural(running, "run")} in training` : "no run in training";
  $("live").classList.toggle("on", running > 0);
  const focused = document.activeElement?.dataset?.key;
  const parts = board.sections.map(drawSection);
  const nothing = parts.some(Boolean) ? "" : html`<p class="empty quiet">No run has all of these words. Compare columns with = < > and :, such as state:failed.</p>`;
  const leagues = board.leagues.length ? html`<div class="bar"><span class="quiet">Leagues</span>${board.leagues.map((name) =>
    html`<button data-open="league ${name}" data-key="league ${name}">${name}</button>`)}</div>` : "";
  const empty = html`<div class="empty"><h2>No runs yet</h2><p>This folder has no runs. Train an agent, and its curve appears here while it learns:</p>
    <pre>${board.example}</pre><p class="quiet">Runs are expected in <code>${board.folder}</code>, in its folder <code>runs</code>, or in a sweep.</p></div>`;
  $("table").innerHTML = html`${leagues}${board.sections.length ? [...parts, nothing] : empty}`.text;
  if (focused) document.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  for (const box of document.querySelectorAll("#table input[data-mixed]")) box.indeterminate = true;
  const total = allGroups().reduce((sum, { group }) => sum + group.runs.length, 0);
  const found = board.sections.reduce((sum, section) => sum + sorted(section).reduce((s, group) => s + group.runs.length, 0), 0);
  $("count").textContent = view.find ? `${found} of ${total}` : plural(total, "run");
}

const sectionKey = (section) => `${section.env_name} ${section.sweep ?? ""}`;

function drawSection(section) {
  const groups = sorted(section);
  if (!groups.length) return "";
  const heads = [...HEADS, ...section.settings.map(({ name, short }) => [name, short])];
  const sweep = section.sweep === null ? "" : html`<button data-open="sweep ${board.sweeps[section.sweep]}" data-key="sweep ${board.sweeps[section.sweep]}">Sweep report</button>`;
  const title = section.sweep === null ? section.title : `${section.title}, sweep ${board.sweeps[section.sweep]}`;
  const runs = groups.flatMap((group) => group.runs);
  return html`<details class="section" data-section="${sectionKey(section)}" ${new Html(closed.has(sectionKey(section)) ? "" : "open")}>
    <summary>${checkbox(runs, `all ${sectionKey(section)}`, `Show all runs of ${title}`)}${title} <small class="quiet">${plural(runs.length, "run")}</small>${sweep}</summary>
    <table><thead><tr>${heads.map(([key, text]) => html`<th scope="col" class="${key === "state" ? "text" : ""}" aria-sort="${view.sort === key ? view.up ? "ascending" : "descending" : "none"}">
      <button data-sort="${key}" data-key="${sectionKey(section)} ${key}" aria-pressed="${view.sort === key}" title="${key}">${text}${view.sort === key ? view.up ? " ↑" : " ↓" : ""}</button></th>`)}</tr></thead>
    <tbody>${groups.map((group) => drawGroup(section, group))}</tbody></table></details>`;
}

/** Return a checkbox that shows runs. It has the color of their line, if `line` is the key of one. */
function checkbox(runs, key, label, line = null) {
  const paths = chosenPaths(), count = runs.filter((run) => paths.has(run.path)).length;
  const state = count === runs.length ? "checked" : count ? "data-mixed" : "";
  const color = line !== null && count ? `accent-color:${colorOf(numberOf(line))}` : "";
  return html`<input type="checkbox" ${new Html(state)} style="${color}" data-runs="${JSON.stringify(runs.map((run) => run.path))}" data-key="${key}" aria-label="${label}">`;
}

/** Return the name of a group in the table, where the settings have columns of their own. */
function titleOf(section, group) {
  const name = group.runs[0].name;
  return name && section.groups.filter((each) => each.runs[0].name === name).length === 1 ? name : group.label;
}

function drawGroup(section, group) {
  const key = `${sectionKey(section)} ${group.label}`, title = titleOf(section, group);
  if (group.runs.length === 1 && section.groups.find((each) => each.label === group.label).runs.length === 1) {
    return drawRun(section, group.runs[0], title, "", true);
  }
  const isOpen = unfolded.has(key), states = group.runs.map((run) => run.state), first = group.runs[0];
  const running = states.filter((state) => state === "running").length;
  const state = running ? `${running} running` : [...new Set(states)].join(", ");
  const interval = group.low === null ? "" : html`<span class="interval">${short(group.low)} to ${short(group.high)}</span>`;
  const latest = (name) => Math.max(...group.runs.map((run) => run[name]));
  const own = section.settings.map((_, i) => {
    const values = [...new Set(group.runs.map((run) => valueText(run.settings[i])))];
    return html`<td>${values.length > 1 ? html`<span class="quiet">${values.length} values</span>` : values[0]}</td>`;
  });
  const row = html`<tr><td><div class="name">${checkbox(group.runs, key, `Show ${group.label}`, view.seeds ? key : null)}
    <button class="fold" data-fold="${key}" data-key="fold ${key}" aria-expanded="${isOpen}" aria-label="Runs of ${group.label}">${isOpen ? "▾" : "▸"}</button>
    <button data-fold="${key}" data-key="name ${key}" title="${group.label}">${title}</button> <small>${plural(group.runs.length, "seed")}</small></div></td>
    <td class="text ${running ? "running" : first.state}">${state}</td><td class="${group.evaluated ? "" : "training"}">${short(group.score)} ${interval}</td>
    <td>${short(latest("steps"))}</td><td>${duration(latest("train_s"))}</td><td>${startText(latest("started"))}</td>${own}</tr>`;
  const members = isOpen ? group.runs.map((run) => drawRun(section, run, run.title.split("/").pop(), "member", !view.seeds)) : "";
  return [row, members];
}

function drawRun(section, run, label, kind, isLine) {
  const share = run.total_steps ? Math.min(1, run.steps / run.total_steps) : 0;
  const progress = run.state === "running" ? html` <progress value="${share}" aria-label="Progress" title="${Math.round(100 * share)} %"></progress>` : "";
  const spread = run.score_std === null || !run.evaluated ? "" : html`<span class="interval">± ${short(run.score_std)}</span>`;
  const note = run.evaluated ? "" : "Score in training, not of an evaluation";
  return html`<tr class="${kind} ${view.open === `run ${run.path}` ? "open" : ""}"><td><div class="name">${checkbox([run], run.path, `Show ${run.title}`, isLine ? run.path : null)}
    <button data-open="run ${run.path}" data-key="open ${run.path}" title="${run.title}">${label}</button>${run.tags.map((tag) => html`<span class="tag">${tag}</span>`)}</div></td>
    <td class="text ${run.state}" title="${run.reason}">${run.state}${progress}</td><td class="${run.evaluated ? "" : "training"}" title="${note}">${short(run.score)} ${spread}</td>
    <td>${short(run.steps)}</td><td>${duration(run.train_s)}</td><td>${startText(run.started)}</td>${run.settings.map((value) => html`<td>${valueText(value)}</td>`)}</tr>`;
}

function startText(seconds) {
  const time = new Date(1000 * seconds), isToday = time.toDateString() === new Date().toDateString();
  return isToday ? time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }) : time.toLocaleDateString([], { day: "numeric", month: "short" });
}

// Charts

function drawPanels() {
  const wanted = chosenSections()
    .flatMap((section) => metricsOf(section).map((metric, place) => ({ metric, place, section, key: `${place} ${sectionKey(section)}` })))
    .sort((one, other) => one.place - other.place);
  const keys = new Set(wanted.map(({ key }) => key));
  for (const [key, panel] of panels) {
    if (!keys.has(key)) {
      panel.element.remove();
      panels.delete(key);
    }
  }
  $("panels").classList.toggle("single", wanted.length === 1);
  for (const { metric, place, section, key } of wanted) {
    if (!panels.has(key)) panels.set(key, newPanel(place));
    const panel = panels.get(key), { element, chart } = panel;
    $("panels").append(element);
    fillMetrics(element.querySelector(".metric"), metric);
    element.querySelector(".env").textContent = section.title;
    element.querySelector(".remove").hidden = metricsOf(section).length === 1;
    const lines = linesOf(section, metric);
    chart.draw(lines, { x: view.x, smoothing: view.smoothing / 100, log: view.log });
    element.querySelector(".note").textContent = noteOf(metric, lines);
    element.querySelector(".unzoom").hidden = !chart.zoom;
  }
  if (!wanted.length && board.version >= 0) {
    $("panels").innerHTML = board.sections.length ? html`<p class="quiet" data-note>Choose runs in the table to see their curves.</p>`.text : "";
  } else {
    $("panels").querySelector("[data-note]")?.remove();
  }
}

/** Return what a reader of a chart must know: files that are not yet read, damaged lines, and runs without values. */
function noteOf(metric, lines) {
  const known = curves.get(metric), notes = [];
  if (!board.metrics.includes(metric)) return `No run has the metric ${metric}.`;
  if (known && known.share < 1) notes.push(`Reading metrics: ${Math.floor(100 * known.share)} % done.`);
  if (view.log && lines.some((line) => line.curves.some((curve) => curve.mean.some((value) => value <= 0)))) {
    notes.push("Values of 0 and less have no place on a log axis.");
  }
  const without = lines.filter((line) => !line.curves.length);
  if (without.length && (!known || known.share === 1)) notes.push(`Without values so far: ${without.slice(0, 3).map((line) => line.label).join("; ")}${without.length > 3 ? ` and ${without.length - 3} more` : ""}.`);
  for (const run of lines.flatMap((line) => line.members)) {
    const damaged = known?.byRun.get(run.id)?.damaged;
    if (damaged) notes.push(`${run.title}: ${plural(damaged, "damaged line")} of metrics.jsonl ${damaged === 1 ? "is" : "are"} left out.`);
  }
  return notes.join(" ");
}

function fillMetrics(select, metric) {
  const names = [...new Set([...board.metrics, metric])].sort((a, b) => a.localeCompare(b));
  const text = names.join("\n");
  if (select.dataset.names !== text) {
    select.dataset.names = text;
    const folders = Map.groupBy ? Map.groupBy(names, (name) => name.includes("/") ? name.split("/")[0] : "run") : new Map([["", names]]);
    select.innerHTML = [...folders].map(([folder, members]) =>
      html`<optgroup label="${folder}">${members.map((name) => html`<option value="${name}">${name}</option>`)}</optgroup>`.text).join("");
  }
  select.value = metric;
}

function newPanel(place) {
  const element = $("panel").content.firstElementChild.cloneNode(true), host = element.querySelector(".plot");
  const chart = new Chart(host, element.querySelector(".legend"));
  $("panels").append(element);
  element.querySelector(".metric").addEventListener("change", (event) => {
    view.metrics = currentMetrics();
    view.metrics[place] = event.target.value;
    changed();
  });
  element.querySelector(".remove").addEventListener("click", () => {
    view.metrics.splice(place, 1);
    changed();
  });
  element.querySelector(".unzoom").addEventListener("click", () => {
    chart.resetZoom();
    element.querySelector(".unzoom").hidden = true;
  });
  host.addEventListener("zoomed", () => { element.querySelector(".unzoom").hidden = false; });
  host.addEventListener("dblclick", () => { element.querySelector(".unzoom").hidden = true; });
  return { element, chart };
}

const currentMetrics = () => view.metrics ?? metricsOf(chosenSections()[0] ?? { metric: "environment/score" });

function addChart(metric) {
  const shown = currentMetrics();
  const unused = ["losses/entropy", "sps", ...board.metrics].find((name) => board.metrics.includes(name) && !shown.includes(name));
  view.metrics = [...shown, metric ?? unused].filter(Boolean);
  changed();
}

// Details

let opened = ""; // what the details show, so that they are not drawn again while a video plays
let parallel = null;

async function drawDetails() {
  const details = $("details"), [kind, ...rest] = view.open.split(" "), name = rest.join(" ");
  details.hidden = !view.open;
  if (!view.open) return;
  const wanted = view.open;
  const draw = { run: drawRunDetails, sweep: drawSweep, league: drawLeague, machine: drawMachine }[kind];
  const isAgain = opened === wanted;
  if (!isAgain) details.innerHTML = html`${head(name || kind)}<p class="quiet">Reading …</p>`.text;
  opened = wanted;
  try {
    const content = draw ? await draw(name) : null;
    if (opened !== wanted) return; // the user has opened something else meanwhile
    const unfolded = [...details.querySelectorAll("details")].map((part) => part.open);
    const focused = document.activeElement?.closest("#details [data-key]")?.dataset.key;
    details.innerHTML = html`${head(content?.title ?? name)}${content?.body ?? html`<p>There is no ${kind} ${name} in this folder.</p>`}`.text;
    if (isAgain) details.querySelectorAll("details").forEach((part, i) => { part.open = unfolded[i] ?? part.open; });
    if (focused) details.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    content?.after?.();
  } catch (error) {
    details.innerHTML = html`${head(name)}<p class="error">${error.message}</p>`.text;
  }
}

/** Return whether the details show a run whose facts are still changing. */
function isLive(what) {
  const found = what.startsWith("run ") ? findRun(what.slice(4)) : null;
  if (!found) return false;
  const isRunning = found.run.state === "running", was = wasRunning;
  wasRunning = isRunning;
  return isRunning || was; // once more at the end, for the result and the video
}
let wasRunning = false;

const head = (title) => html`<div class="head"><h2 tabindex="-1">${title}</h2><button data-open="" data-key="close" aria-label="Close the details">Close</button></div>`;
const commandOf = (title, command) => html`<h3>${title}</h3><div class="command"><code>${command}</code><button data-copy="${command}" data-key="copy ${title}">Copy</button></div>`;

function findRun(path) {
  for (const { section, group } of allGroups()) {
    const run = group.runs.find((each) => each.path === path);
    if (run) return { section, group, run };
  }
  return null;
}

async function drawRunDetails(path) {
  const found = findRun(path);
  if (!found) return null;
  const { section, run } = found, about = await ask(`run/${run.id}`), result = about.result;
  const score = run.evaluated ? `${short(run.score)} ± ${short(run.score_std)} over ${plural(result.episodes ?? 0, "episode")}; random play: ${short(result.random_score)}` : `${short(run.score)} in training`;
  const facts = [["state", run.reason ? `${run.state}: ${run.reason}` : run.state], ["score", score], ["steps", `${short(run.steps)} of ${short(run.total_steps)}`], ["training", duration(run.train_s)],
    ["speed", result.steps_per_s ? `${short(result.steps_per_s)} steps/s` : about.figures.sps ? `${short(about.figures.sps)} steps/s` : null], ["device", result.device], ["versions", result.pufferlib ? `pufferlib ${result.pufferlib}, torch ${result.torch}` : null],
    ["stopped", result.stop_reason], ["folder", about.folder]];
  const others = [...chosenPaths()].filter((each) => each !== path).map(findRun).filter((each) => each && each.section === section).map((each) => each.run);
  const differing = section.settings.map(({ name }, i) => ({ name, own: valueText(run.settings[i]), others: [...new Set(others.map((each) => valueText(each.settings[i])))] }));
  const table = differing.length ? html`<div class="wide"><table><thead><tr><th>setting</th><th class="text">this run</th><th class="text">other shown runs</th></tr></thead><tbody>${differing.map(({ name, own, others }) =>
    html`<tr><td>${name}</td><td class="text">${own}</td><td class="text quiet">${others.slice(0, 6).join(", ") || "–"}${others.length > 6 ? ` and ${others.length - 6} more` : ""}</td></tr>`)}</tbody></table></div>` : html`<p class="quiet">This run has no setting that differs from the other runs of its environment.</p>`;
  const settings = Object.entries(about.settings).map(([name, value]) => html`<tr><td>${name}</td><td class="text">${valueText(value)}</td></tr>`);
  const figures = Object.entries(about.figures).map(([name, value]) => html`<tr><td><button data-chart="${name}" data-key="chart ${name}" title="Add a chart of ${name}">${name}</button></td><td>${short(value)}</td></tr>`);
  const videos = about.videos.map((file) => html`<h3>${file}</h3><video controls loop muted playsinline preload="metadata" src="files/${run.id}/${encodeURIComponent(file)}"></video>`);
  return {
    title: run.title,
    body: html`<div class="cards">
      <div><dl class="facts">${facts.filter(([, value]) => value).map(([name, value]) => html`<dt>${name}</dt><dd class="${name === "state" ? run.state : ""}">${value}</dd>`)}</dl></div>
      <div>${Object.entries(about.commands).map(([title, command]) => commandOf(title, command))}</div>
      <div><h3>Settings that differ</h3>${table}<details><summary>All ${settings.length} settings</summary><table><tbody>${settings}</tbody></table></details></div>
      ${videos.length ? html`<div>${videos}</div>` : ""}
      <div><h3>Last metrics</h3><details ${new Html(videos.length ? "" : "open")}><summary>${plural(figures.length, "metric")}: click one to see its curve</summary><table><tbody>${figures}</tbody></table></details></div></div>`,
  };
}

async function drawSweep(name) {
  const number = board.sweeps.indexOf(name);
  if (number < 0) return null;
  const sweep = await ask(`sweep/${number}`);
  if (sweep.problem) return { title: `Sweep ${name}`, body: html`<p class="error">${sweep.problem}</p>` };
  const states = Object.entries(sweep.trials.reduce((counts, { state }) => ({ ...counts, [state]: (counts[state] ?? 0) + 1 }), {}));
  const largest = Math.max(...Object.values(sweep.importances));
  const bars = Object.entries(sweep.importances).map(([setting, share]) =>
    html`<span>${setting}</span><span class="bar-of" style="width:${100 * share / largest}%"></span><span>${Math.round(100 * share)} %</span>`);
  const best = sweep.trials.find((trial) => trial.number === sweep.best);
  const hasLines = sweep.trials.some((trial) => trial.score !== null && Object.keys(trial.settings).length);
  return {
    title: `Sweep ${name}`,
    body: html`<p class="quiet">${plural(sweep.trials.length, "trial")}: ${states.map(([state, count]) => `${count} ${state}`).join(", ")}. ${sweep.is_minimized ? "A lower score is better." : ""}</p>
      <h3>Settings and score</h3><p class="quiet">Drag along an axis to keep only the trials in a range. Click the axis to keep all. The bold line is the best trial. Dashed trials were pruned or failed.</p>
      ${hasLines ? html`<div class="wide"><canvas class="parallel" role="img" aria-label="Parallel coordinates of the settings and the score of each trial. The table has the same values."
        style="min-width:${62 * (sweep.spaces.length + 1)}px"></canvas></div><p id="pointed" class="quiet" role="status">Point at a line to see its trial.</p>` : html`<p class="quiet">No trial has a score yet.</p>`}
      <div class="cards"><div><h3>Importance of the settings</h3>${bars.length ? html`<div class="bars">${bars}</div><p class="quiet">Share of the differences in score that a setting explains (PED-ANOVA).</p>` : html`<p class="quiet">This needs four finished trials with different scores.</p>`}</div>
      <div>${best ? commandOf(`The best: trial ${best.number}, score ${short(best.score)} after ${duration(best.seconds)}`, sweep.command) : ""}</div></div>`,
    after: () => {
      parallel?.observer.disconnect();
      const canvas = document.querySelector("canvas.parallel");
      if (!canvas) return;
      const show = (trial) => {
        const settings = trial && sweep.spaces.map(({ setting }) => `${setting.split(".").pop()} ${valueText(trial.settings[setting])}`).join(", ");
        $("pointed").textContent = trial ? `Trial ${trial.number}, ${trial.state}, score ${short(trial.score)}: ${settings}` : "Point at a line to see its trial.";
      };
      const own = board.sections.filter((section) => section.sweep === number).flatMap((section) => section.groups).flatMap((group) => group.runs);
      const path = (trial) => own.find((run) => run.path.split("/").pop() === trial.run)?.path;
      parallel = new Parallel(canvas, sweep, show, (trial) => path(trial) && open(`run ${path(trial)}`));
    },
  };
}

async function drawLeague(name) {
  const number = board.leagues.indexOf(name);
  if (number < 0) return null;
  const league = await ask(`league/${number}`);
  if (league.problem) return { title: `League ${name}`, body: html`<p class="error">${league.problem}</p>` };
  const low = Math.min(...league.players.map((player) => player.rating - player.width));
  const high = Math.max(...league.players.map((player) => player.rating + player.width));
  const at = (rating) => 100 * (rating - low) / (high - low || 1);
  const rows = league.players.map((player, i) => html`<tr><td>${i + 1}. ${player.name}</td><td>${Math.round(player.rating)} <span class="interval">± ${Math.round(player.width)}</span></td>
    <td><span class="rating"><i style="left:${at(player.rating - player.width)}%;width:${at(player.rating + player.width) - at(player.rating - player.width)}%"></i><b style="left:${at(player.rating)}%"></b></span></td>
    <td>${player.games ? `${(100 * player.points / player.games).toFixed(1)} %` : "–"}</td><td>${player.games}</td>${player.results.map((result, j) => html`<td>${i === j ? "" : result.some(Boolean) ? result.join("-") : "."}</td>`)}</tr>`);
  return {
    title: `League ${name}`,
    body: html`<p class="quiet">Elo ratings with a mean of 1000, and their 95 % intervals. The last columns have wins, draws and losses against each player.</p><div class="wide"><table><thead><tr><th>player</th><th>rating</th><th></th><th>points</th><th>games</th>${league.players.map((_, i) => html`<th>${i + 1}</th>`)}</tr></thead><tbody>${rows}</tbody></table></div>`,
  };
}

// Load of the machine

let load = null, loadPlot = null;

async function readLoad() {
  load = await ask("load");
  const now = load.samples[load.samples.length - 1];
  const gpus = Object.keys(now).filter((name) => /^gpu \d+$/.test(name)).map((name) => ` · ${name.toUpperCase()} ${Math.round(now[name])} %`);
  $("load").hidden = false;
  $("load").textContent = `CPU ${Math.round(now.cpu)} % · memory ${Math.round(now.memory)} %${gpus.join("")}`;
  if (view.open === "machine" && opened === "machine") drawLoad();
}

async function drawMachine() {
  if (!load) return { title: "This machine", body: html`<p class="quiet">${board.live === false ? "An export has no load of a machine." : "Reading …"}</p>` };
  return {
    title: "This machine",
    body: html`<p class="quiet">Load while this page is open, in percent of ${plural(load.cores, "core")} and ${(load.memory_bytes / 2 ** 30).toFixed(1)} GiB of memory.</p><div id="load-plot" class="plot"></div><ul id="load-legend" class="legend"></ul>`,
    after: () => { loadPlot = null; drawLoad(); },
  };
}

function drawLoad() {
  const host = $("load-plot");
  if (!host) return;
  const names = Object.keys(load.samples[load.samples.length - 1]).filter((name) => name !== "time");
  const data = [load.samples.map((sample) => sample.time), ...names.map((name) => load.samples.map((sample) => sample[name] ?? null))];
  if (loadPlot) return loadPlot.setData(data);
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const axis = { stroke: color("--quiet"), grid: { stroke: color("--line"), width: 1 }, font: "12px system-ui" };
  loadPlot = new uPlot({
    width: host.clientWidth, height: host.clientHeight, legend: { show: false },
    series: [{}, ...names.map((name, i) => ({ label: name, stroke: colorOf(i), width: 2, points: { show: false } }))],
    scales: { y: { range: [0, 100] } },
    axes: [axis, { ...axis, size: 58, values: (u, splits) => splits.map((value) => `${value} %`) }],
  }, data, host);
  $("load-legend").innerHTML = names.map((name, i) => html`<li><span class="swatch" style="background:${colorOf(i)}"></span>${name}</li>`.text).join("");
}

// What the user does

/** Draw everything after a choice of the user, and keep the choice in the address. */
function changed() {
  saveView();
  showControls();
  drawTable();
  drawPanels();
  refresh().catch((error) => showProblem(error.message));
}

function open(what) {
  view.open = what;
  opened = "";
  saveView();
  drawTable();
  drawDetails().then(() => {
    if (what) $("details").scrollIntoView({ block: "nearest", behavior: "smooth" });
    $("details").querySelector("h2")?.focus({ preventScroll: true });
  });
}

function saveView() {
  const words = new URLSearchParams();
  if (view.runs) words.set("runs", [...view.runs].join(","));
  for (const metric of view.metrics ?? []) words.append("metric", metric);
  for (const name of ["x", "smoothing", "open", "find", "sort"]) if (view[name] !== "") words.set(name, view[name]);
  for (const name of ["seeds", "log", "up"]) words.set(name, view[name] ? "1" : "0");
  history.replaceState(null, "", `#${words}`);
}

function loadView() {
  Object.assign(view, DEFAULTS);
  const words = new URLSearchParams(location.hash.slice(1));
  if (words.has("runs")) view.runs = new Set(words.get("runs").split(",").filter(Boolean));
  if (words.has("metric")) view.metrics = words.getAll("metric");
  for (const name of ["open", "find", "sort"]) view[name] = words.get(name) ?? view[name];
  if (["steps", "seconds"].includes(words.get("x"))) view.x = words.get("x");
  if (words.has("smoothing")) view.smoothing = Math.min(30, Math.max(0, Number(words.get("smoothing")) || 0));
  for (const name of ["seeds", "log", "up"]) if (words.has(name)) view[name] = words.get(name) === "1";
}

function showControls() {
  $("x").value = view.x;
  $("smoothing").value = view.smoothing;
  $("smoothed").textContent = `${view.smoothing} %`;
  $("seeds").checked = view.seeds;
  $("log").checked = view.log;
  if ($("find").value !== view.find) $("find").value = view.find;
}

$("table").addEventListener("change", (event) => {
  if (!event.target.dataset.runs) return;
  view.runs = new Set(chosenPaths());
  for (const path of JSON.parse(event.target.dataset.runs)) view.runs[event.target.checked ? "add" : "delete"](path);
  changed();
});
$("table").addEventListener("toggle", (event) => {
  const key = event.target.dataset.section;
  if (key) closed[event.target.open ? "delete" : "add"](key);
}, true);
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const { sort, fold, copy, chart } = button.dataset;
  if ("open" in button.dataset) {
    event.preventDefault(); // a button in a summary must not close the section
    open(button.dataset.open);
  } else if (sort) {
    view.up = view.sort === sort ? !view.up : ["name", "state"].includes(sort);
    view.sort = sort;
    changed();
  } else if (fold) {
    unfolded[unfolded.has(fold) ? "delete" : "add"](fold);
    drawTable();
  } else if (copy) {
    try {
      await navigator.clipboard.writeText(copy);
      button.textContent = "Copied";
    } catch { // browsers only allow this on localhost and with https
      getSelection().selectAllChildren(button.previousElementSibling);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  } else if (chart) {
    addChart(chart);
    $("panels").lastElementChild?.scrollIntoView({ block: "nearest", behavior: "smooth" });
  }
});
$("find").addEventListener("input", (event) => { view.find = event.target.value; changed(); });
$("x").addEventListener("change", (event) => { view.x = event.target.value; changed(); });
$("smoothing").addEventListener("input", (event) => { view.smoothing = Number(event.target.value); changed(); });
$("seeds").addEventListener("change", (event) => { view.seeds = event.target.checked; changed(); });
$("log").addEventListener("change", (event) => { view.log = event.target.checked; changed(); });
$("add").addEventListener("click", () => addChart());
$("load").addEventListener("click", () => open(view.open === "machine" ? "" : "machine"));
addEventListener("hashchange", () => { loadView(); changed(); open(view.open); });
addEventListener("keydown", (event) => {
  if (event.key === "/" && !["INPUT", "SELECT"].includes(event.target.tagName)) {
    event.preventDefault();
    $("find").focus();
  }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawTable);

loadView();
showControls();
poll().then(drawDetails);
