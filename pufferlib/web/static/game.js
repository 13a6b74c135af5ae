"use strict";
// Plays one game that was compiled with native/puffer_page.c. Everything else about it is in `facts`, which
// pufferlib/web/games.py writes. The class Game also works outside of pages.

const SAME_STEP = 0, NEXT_STEP = 1;  // PufferAutoreset
const PAUSE_S = 1.5;                 // between two episodes
const REPEATS_AFTER_S = 0.3;         // delay before a held key repeats, if the game waits for keys
const REPEATS_S = 0.12;              // interval between repetitions
const BUDGET_MS = 12;                // longest computation between two frames of the browser

// The functions of a game. All arrays are views into its memory.
class Game {
  // Throws an Error with a sentence for the user if the game cannot run here.
  static async open(facts, code, autoreset = NEXT_STEP) {
    if (typeof WebAssembly !== "object") throw new Error("This page needs WebAssembly, which this browser lacks.");
    if (!WebAssembly.validate(code)) {
      throw new Error("This page needs WebAssembly with SIMD, which this browser lacks. Update the browser.");
    }
    // A game needs no system. Calls such as those of printf do nothing and report an error (52, not supported).
    const nothing = new Proxy({}, { get: () => new Proxy({}, { get: () => () => 52 }) });
    const { instance } = await WebAssembly.instantiate(code, nothing);
    return new Game(facts, instance.exports, autoreset);
  }

  constructor(facts, functions, autoreset) {
    this.facts = facts;
    this.functions = functions;
    functions._initialize();
    facts.parameters.forEach((value, i) => {
      if (typeof value === "number") functions.set_number(i, value);
      else this.bytes(functions.text_of(i), value.length).set(new TextEncoder().encode(value));
    });
    const problem = functions.make(autoreset);
    if (problem) throw new Error(`The game cannot be made: ${this.text(problem)}.`);
  }

  bytes(address, length) {
    return new Uint8Array(this.functions.memory.buffer, address, length);
  }

  text(address) {
    const rest = new Uint8Array(this.functions.memory.buffer, address);
    return new TextDecoder().decode(rest.slice(0, rest.indexOf(0)));
  }

  get observations() { return this.bytes(this.functions.observations(), this.facts.observationBytes); }
  get rewards() {
    return new Float32Array(this.functions.memory.buffer, this.functions.rewards(), this.facts.agents);
  }
  get actions() {
    const kind = "sizes" in this.facts.actions ? Int32Array : Float32Array;
    return new kind(this.functions.memory.buffer, this.functions.actions(), this.facts.agents * this.facts.actions.count);
  }
  get terminals() { return this.bytes(this.functions.terminals(), this.facts.agents); }
  get truncations() { return this.bytes(this.functions.truncations(), this.facts.agents); }
  get masks() { return this.bytes(this.functions.masks(), this.facts.agents); }
  get over() { return this.bytes(this.functions.over(), 1)[0] === 1; }
  get pixels() { return this.bytes(this.functions.pixels(), this.facts.width * this.facts.height * 4); }

  reset(seed) { this.functions.reset(BigInt(seed)); }
  act() { this.functions.act(); }
  step() { this.functions.step(); }
  draw(agent) { this.functions.draw(agent); }
  drawBetween(agent, frames) { this.functions.draw_between(agent, frames); }

  // Means over the episodes that ended since the last report, or null if there are none.
  report() {
    const { metrics } = this.facts;
    const [episodes, ...sums] = new Float64Array(this.functions.memory.buffer, this.functions.report(), 3 + metrics.length);
    if (episodes === 0) return null;
    const names = ["return", "length", ...metrics];
    return Object.fromEntries(names.map((name, i) => [name, sums[i] / episodes]));
  }

  // Map from each action that a click chooses to its rectangle [x, y, width, height] in the image.
  areas(agent) {
    const found = new Map();
    const count = this.facts.actions.sizes?.[0] ?? 0;
    for (let action = 0; action < count; action++) {
      const address = this.functions.area_of(agent, action);
      if (address) found.set(action, [...new Int32Array(this.functions.memory.buffer, address, 4)]);
    }
    return found;
  }
}

// Actions from keys, as in pufferlib/play/controls.py.
class KeyMap {
  constructor(facts) {
    this.actions = facts.actions;
    const keys = facts.keys.map(([name, component, value, about]) => ({ name, component, value, about }));
    this.rows = keys.filter((key) => key.name).sort((a, b) => b.name.split("+").length - a.name.split("+").length);
    this.idle = new Map(keys.filter((key) => !key.name).map((key) => [key.component, key.value]));
    this.waits = this.idle.size === 0;  // the game waits for a key
    this.buttons = keys.filter((key) => key.name && !key.name.includes("+"));
    this.names = new Set(this.buttons.map((key) => key.name));
  }

  // Returns the numbers of an action for the keys that are held down, or null if the game must wait for a key.
  action(down) {
    const chosen = new Map();
    for (const { name, component, value } of this.rows) {
      if (!chosen.has(component) && name.split("+").every((part) => down.has(part))) chosen.set(component, value);
    }
    if (this.waits && chosen.size === 0) return null;
    return this.numbers(new Map([...this.idle, ...chosen]));
  }

  numbers(values) {
    const { count, limit } = this.actions;
    return Array.from({ length: count }, (_, i) => (values.get(i) ?? 0) * (limit ?? 1));
  }
}

// Selection of an area with the arrow keys and Enter, as in pufferlib/play/controls.py.
class Cursor {
  constructor() {
    this.action = null;
    this.at = [0, 0];
  }

  static middle([x, y, width, height]) {
    return [x + width / 2, y + height / 2];
  }

  moveTo(areas, action) {
    this.action = action;
    this.at = Cursor.middle(areas.get(action));
  }

  move(areas, name) {
    if (areas.size === 0) return;
    const [across, down] = { left: [-1, 0], right: [1, 0], up: [0, -1], down: [0, 1] }[name];
    const known = areas.has(this.action);
    let best = null, least = Infinity;
    for (const [action, area] of areas) {
      const [x, y] = Cursor.middle(area).map((part, i) => part - this.at[i]);
      const ahead = x * across + y * down, aside = Math.abs(x * down) + Math.abs(y * across);
      const cost = known ? ahead + 2 * aside : Math.abs(x) + Math.abs(y);
      if ((!known || (ahead > aside / 2 && action !== this.action)) && cost < least) [best, least] = [action, cost];
    }
    if (best !== null) this.moveTo(areas, best);
  }
}

// The page: it lets the agent or the user play.
class Player {
  constructor(game) {
    this.game = game;
    this.facts = game.facts;
    this.keyMap = new KeyMap(game.facts);
    this.hasArrows = ["left", "right", "up", "down"].some((name) => this.keyMap.names.has(name));
    this.cursor = new Cursor();
    this.agent = 0;
    this.speed = 1;
    this.isPaused = this.isMine = this.isShifted = false;
    this.held = new Set();
    this.pressed = new Set();  // since the last step
    this.downSince = new Map();
    this.chosen = null;        // action of a clicked area
    this.canvas = document.querySelector("canvas");
    this.context = this.canvas.getContext("2d");
    this.canvas.width = this.facts.width;
    this.canvas.height = this.facts.height;
    this.image = new ImageData(this.facts.width, this.facts.height);
    this.element = (id) => document.getElementById(id);
    this.buildPage();
    this.restart(0);
    this.fit();
    this.last = performance.now();
    requestAnimationFrame((now) => this.frame(now));
  }

  get userPlays() { return this.isMine || this.isShifted; }

  // ---- Play -----------------------------------------------------------------------------------------------

  restart(seed) {
    this.game.reset(seed);
    this.sum = this.steps = this.part = this.due = this.pause = 0;
    this.begins = false;
    this.chosen = null;
    this.draw();
    this.show();
  }

  // Chooses the actions of the next step. Returns false if the user has not chosen yet.
  choose() {
    const mine = this.userPlays && !this.game.over ? this.takeChoice() : [];
    if (mine === null) return false;
    this.game.act();
    this.game.actions.set(mine, this.agent * this.facts.actions.count);
    return true;
  }

  // Returns the numbers of the user's action, or null.
  takeChoice() {
    const { keyMap, pressed, held, chosen } = this;
    const down = keyMap.waits ? this.repeatedKeys() : new Set([...held, ...pressed]);
    pressed.clear();
    this.chosen = null;
    return chosen === null ? keyMap.action(down) : keyMap.numbers(new Map([[0, chosen]]));
  }

  repeatedKeys() {
    const now = performance.now() / 1000;
    const wanted = new Set(this.pressed);
    for (const name of this.held) if (now - this.downSince.get(name) > REPEATS_AFTER_S) wanted.add(name);
    if (this.pressed.size === 0 && now - (this.repeatedAt ?? 0) < REPEATS_S) return new Set();
    if (wanted.size) this.repeatedAt = now;
    return wanted;
  }

  // Makes a step with the actions that were chosen.
  step() {
    const { game, agent } = this;
    if (this.begins) this.sum = this.steps = 0;
    const wasOver = game.over;  // then this step starts an episode
    game.step();
    this.part = 0;
    this.steps += wasOver ? 0 : 1;
    this.sum += game.rewards[agent];
    this.begins = game.over || game.terminals[agent] === 1 || game.truncations[agent] === 1;
    this.pause = game.over ? PAUSE_S : 0;
    const report = game.report();
    if (report && "score" in report) this.element("score").textContent = rounded(report.score);
  }

  // Moves on by one picture, which is a step or a part of one. Returns false if the game waits for the user.
  advance(draws) {
    const { picturesPerStep, framesPerStep } = this.facts;
    if (this.part === 0 && !this.choose()) return false;
    this.part++;
    if (this.part >= picturesPerStep || this.game.over) {
      this.step();
      if (draws) this.draw();
    } else if (draws) {
      this.game.drawBetween(this.agentToDraw, (this.part * framesPerStep) / picturesPerStep);
      this.paint();
    }
    return true;
  }

  frame(now) {
    requestAnimationFrame((next) => this.frame(next));
    const seconds = Math.min((now - this.last) / 1000, 0.1);
    this.last = now;
    if (this.isPaused) return;
    if (this.pause > 0) {
      this.pause -= seconds * Math.max(this.speed, 1);
      return;
    }
    if (this.userPlays && this.keyMap.waits && this.part === 0) {
      if (this.advance(true)) this.show();
      this.due = 0;
      return;
    }
    this.due += seconds * this.facts.framesPerSecond * this.speed;
    if (this.due < 1) return;
    const started = performance.now();
    while (this.due >= 1 && this.pause <= 0) {
      this.due--;
      const isLast = this.due < 1 || performance.now() - started > BUDGET_MS;
      const advanced = this.advance(isLast);
      if (isLast || !advanced || this.pause > 0) break;
    }
    if (this.due >= 1) this.due = 0;  // the computer is too slow for this speed
    if (this.pause > 0) this.draw();
    this.show();
  }

  // ---- Output ---------------------------------------------------------------------------------------------

  // With one agent, the image is the one that `env.render()` returns.
  get agentToDraw() { return this.facts.agents > 1 ? this.agent : -1; }

  draw() {
    this.game.draw(this.agentToDraw);
    this.paint();
  }

  paint() {
    this.image.data.set(this.game.pixels);
    this.context.putImageData(this.image, 0, 0);
    const areas = this.userPlays && !this.game.over && this.cursor.action !== null ? this.game.areas(this.agent) : null;
    if (areas?.has(this.cursor.action)) {
      this.context.strokeStyle = "rgb(255 64 200)";
      this.context.lineWidth = Math.max(2, this.facts.height / 150);
      this.context.strokeRect(...areas.get(this.cursor.action));
    }
  }

  show() {
    const set = (id, text) => {
      if (this.element(id).textContent !== text) this.element(id).textContent = text;
    };
    set("return", rounded(this.sum));
    set("steps", String(this.steps));
    const isOut = this.game.masks[this.agent] === 0;
    const agent = this.facts.agent ? "The agent plays." : "Random actions play.";
    const mine = this.keyMap.waits ? "You play. The game waits for you." : "You play.";
    const way = matchMedia("(pointer: coarse)").matches ? "Touch a button or the image to play." : "Hold Shift to play.";
    set("who", isOut ? "This player is out." : this.userPlays ? mine : `${agent} ${way}`);
    this.element("you").setAttribute("aria-pressed", String(this.userPlays));
    this.element("pause").setAttribute("aria-pressed", String(this.isPaused));
  }

  // Scales the canvas to whole pixels of the screen if it is enlarged.
  fit() {
    const stage = this.canvas.parentElement;
    const rest = document.documentElement.scrollHeight - stage.offsetHeight;
    const height = Math.max(window.innerHeight - rest, 240, window.innerHeight / 2);
    const ratio = window.devicePixelRatio || 1;
    let scale = Math.min(stage.clientWidth / this.facts.width, height / this.facts.height) * ratio;
    if (scale >= 1) scale = Math.floor(scale);
    this.canvas.style.imageRendering = scale >= 1 ? "pixelated" : "auto";
    this.canvas.style.width = `${(this.facts.width * scale) / ratio}px`;
    this.canvas.style.height = `${(this.facts.height * scale) / ratio}px`;
  }

  // ---- Input ----------------------------------------------------------------------------------------------

  takeOver(isMine) {
    this.isMine = isMine;
    this.show();
  }

  press(name) {
    if (!this.held.has(name)) {
      this.downSince.set(name, performance.now() / 1000);
      this.pressed.add(name);
    }
    this.held.add(name);
    if (!this.userPlays) return;
    if (name === "enter" && !this.keyMap.names.has(name)) this.chosen = this.cursor.action;
    else if (["left", "right", "up", "down"].includes(name) && !this.hasArrows) {
      this.cursor.move(this.game.areas(this.agent), name);
      this.draw();
    }
  }

  release(name) {
    this.held.delete(name);
  }

  handleKey(event, isDown) {
    if (event.key === "Shift") {
      this.isShifted = isDown;
      this.show();
      return;
    }
    const { tagName } = event.target;
    const name = keyName(event);
    if (!name || event.ctrlKey || event.altKey || event.metaKey || ["INPUT", "SELECT"].includes(tagName)) return;
    if (tagName === "BUTTON" && ["space", "enter", "tab"].includes(name)) return;
    const isArea = this.facts.areas && ["left", "right", "up", "down", "enter"].includes(name);
    if (isDown && name === "r" && !event.repeat) this.element("restart").click();
    if (!this.keyMap.names.has(name) && !isArea) return;
    if (this.userPlays) event.preventDefault();
    if (isDown) this.press(name);
    else this.release(name);
  }

  handlePointer(event) {
    this.canvas.focus({ preventScroll: true });
    const box = this.canvas.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * this.facts.width;
    const y = ((event.clientY - box.top) / box.height) * this.facts.height;
    const areas = this.game.areas(this.agent);
    for (const [action, area] of areas) {
      if (x >= area[0] && x < area[0] + area[2] && y >= area[1] && y < area[1] + area[3]) {
        this.takeOver(true);
        this.cursor.moveTo(areas, action);
        this.chosen = action;
        return;
      }
    }
    if (event.pointerType === "touch") this.takeOver(true);
  }

  buildPage() {
    const on = (id, kind, action) => this.element(id).addEventListener(kind, action);
    for (const id of ["game", "panel"]) this.element(id).hidden = false;
    this.element("scored").hidden = !this.facts.metrics.includes("score");
    on("you", "click", () => this.takeOver(!this.isMine));
    on("pause", "click", () => {
      this.isPaused = !this.isPaused;
      this.show();
    });
    on("step", "click", () => {
      this.isPaused = true;
      this.pause = 0;
      do if (!this.advance(false)) break; while (this.part !== 0);
      this.draw();
      this.show();
    });
    on("speed", "change", (event) => { this.speed = Number(event.target.value); });
    on("restart", "click", () => {
      const seed = this.element("seed");
      if (seed.reportValidity()) this.restart(Math.trunc(Number(seed.value)));
    });
    on("seed", "change", () => this.element("restart").click());
    this.element("chooser").hidden = this.facts.agents === 1;
    for (let i = 0; i < this.facts.agents; i++) this.element("player").append(new Option(String(i), String(i)));
    on("player", "change", (event) => {
      this.agent = Number(event.target.value);
      this.sum = 0;
      this.draw();
      this.show();
    });
    for (const kind of ["keydown", "keyup"]) {
      window.addEventListener(kind, (event) => this.handleKey(event, kind === "keydown"));
    }
    window.addEventListener("blur", () => {
      this.held.clear();
      this.isShifted = false;
    });
    window.addEventListener("resize", () => this.fit());
    this.canvas.addEventListener("pointerdown", (event) => this.handlePointer(event));
    this.buildKeys();
  }

  // Writes the list of keys, and a button for each of them on devices with a touch screen.
  buildKeys() {
    const rows = [["Shift", "you play while you hold it"], ["R", "restart"]];
    if (this.facts.areas) rows.push(["click", "choose a place, or use the arrow keys and Enter"]);
    const arrows = document.createElement("div"), others = document.createElement("div");
    arrows.className = "arrows";
    others.className = "others";
    const isRoomy = this.keyMap.buttons.length <= 8;
    for (const { name, about } of this.keyMap.buttons) {
      const isArrow = name in ARROWS, label = LABELS[name] ?? name.toUpperCase();
      rows.push([label, about]);
      const button = document.createElement("button");
      button.textContent = isRoomy && !isArrow && about.length < 16 ? about : label;
      button.setAttribute("aria-label", about);
      button.className = name;
      button.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        button.setPointerCapture(event.pointerId);
        this.takeOver(true);
        this.press(name);
      });
      for (const kind of ["pointerup", "pointercancel"]) button.addEventListener(kind, () => this.release(name));
      (isArrow ? arrows : others).append(button);
    }
    this.element("pad").append(...[arrows, others].filter((part) => part.children.length));
    for (const [key, about] of rows) {
      const item = document.createElement("li"), label = document.createElement("kbd");
      label.textContent = key;
      item.append(label, ` ${about}`);
      this.element("keys").append(item);
    }
  }
}

const ARROWS = { left: "◀", right: "▶", up: "▲", down: "▼" };
const LABELS = { ...ARROWS, space: "Space", enter: "Enter", tab: "Tab", backspace: "Backspace" };

// Returns the name of a key in facts.keys, or "".
function keyName(event) {
  const named = { " ": "space", Enter: "enter", Tab: "tab", Backspace: "backspace" };
  const digit = /^(?:Digit|Numpad)(\d)$/.exec(event.code);  // with Shift, event.key is another character
  if (digit) return digit[1];
  if (event.key.startsWith("Arrow")) return event.key.slice("Arrow".length).toLowerCase();
  return named[event.key] ?? (event.key.length === 1 ? event.key.toLowerCase() : "");
}

function rounded(number) {
  return String(Math.round(number * 1000) / 1000);
}

async function start() {
  try {
    const facts = JSON.parse(document.getElementById("facts").textContent);
    const code = Uint8Array.from(atob(document.getElementById("code").textContent), (c) => c.charCodeAt(0));
    window.player = new Player(await Game.open(facts, code));
  } catch (error) {
    const problem = document.getElementById("problem");
    problem.textContent = error.message;
    problem.hidden = false;
  }
}

if (typeof document === "object") start();
else module.exports = { Game, KeyMap, SAME_STEP, NEXT_STEP };
