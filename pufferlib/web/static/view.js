// The page of puffer view. It draws the frames that the server sends, and sends keys and clicks back.
//
// A message of the server is JSON with any of these:
//   size, rows         size of the image, and its rows [first, end) that changed. Their pixels follow as a second
//                      message: RGB, compressed with zlib
//   text               what an environment without images shows, with ANSI color codes
//   state              items about the episode and the session
//   keys               groups of keys, each with a name and a description. Hints for the user have no description
//   controls           whether the keys of this browser reach the environment, as another one may be in use
// The page answers {"ready": true} when it has drawn a frame, and the server sends the newest one then.

const stage = document.getElementById("stage");
const canvas = stage.querySelector("canvas");
const context = canvas.getContext("2d");
const screen = stage.querySelector("pre");
const note = document.getElementById("note");

const NAMES = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down", " ": "space" };
const SIGNS = { left: "←", right: "→", up: "↑", down: "↓" };
const OTHERS = ["Enter", "Backspace", "F7", "F8", "F9"];
const SMALL = 300; // px. Images below this height are shown with sharp pixels
const MANY = 9; // more keys than this get small buttons on a phone
const COLORS = ["#000000", "#d05050", "#50b050", "#c09040", "#6a84f0", "#c060c0", "#40b0b8", "#d0d0d0"];

let socket = null;
let pixels = null; // ImageData of the image
let message = null; // the message whose pixels come next
const held = new Set(); // names of the keys that are down

function connect() {
  socket = new WebSocket(new URL("socket", location.href.replace(/^http/, "ws")));
  socket.binaryType = "arraybuffer";
  socket.onopen = () => {
    note.textContent = "";
    ready();
  };
  socket.onmessage = async ({ data }) => {
    if (typeof data === "string") {
      message = JSON.parse(data);
      if (message.rows) return; // until its pixels are here
    } else {
      drawRows(message, await inflated(data));
    }
    describe(message);
    ready();
  };
  socket.onclose = () => {
    note.textContent = "The session has ended, or cannot be reached. This page connects again when it is back.";
    held.clear();
    setTimeout(connect, 1000);
  };
}

function send(value) {
  if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(value));
}

/** Ask for the next frame, but not while the page is hidden. */
function ready() {
  if (document.hidden) document.addEventListener("visibilitychange", ready, { once: true });
  else send({ ready: true });
}

async function inflated(data) {
  const stream = new Blob([data]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// ---- The image ----

function drawRows({ size: [width, height], rows }, rgb) {
  if (!pixels || pixels.width !== width || pixels.height !== height) {
    pixels = new ImageData(width, height);
    pixels.data.fill(255);
    canvas.width = width;
    canvas.height = height;
    canvas.style.setProperty("--aspect", width / height);
    canvas.classList.toggle("small", height < SMALL);
  }
  let from = 0;
  for (const [first, end] of rows) {
    for (let to = 4 * width * first; to < 4 * width * end; to += 4) {
      pixels.data[to] = rgb[from++];
      pixels.data[to + 1] = rgb[from++];
      pixels.data[to + 2] = rgb[from++];
    }
    context.putImageData(pixels, 0, 0, 0, first, width, end - first);
  }
}

/** Show text with ANSI color codes. */
function drawText(text) {
  screen.replaceChildren();
  const plain = text.replace(/\x1b\[[\d;]*[A-Za-z]/g, "");
  screen.style.setProperty("--columns", Math.max(...plain.split("\n").map((line) => line.length), 20));
  let style = {};
  text.split(/\x1b\[([\d;]*)[A-Za-z]/).forEach((part, index) => {
    if (index % 2) return part.split(";").forEach((number) => (style = styled(style, Number(number))));
    const span = document.createElement("span");
    span.textContent = part;
    const [ink, back] = style.reverse ? [style.back ?? "#000000", style.ink ?? COLORS[7]] : [style.ink, style.back];
    Object.assign(span.style, { color: ink ?? "", backgroundColor: back ?? "" });
    screen.append(span);
  });
}

function styled(style, number) {
  if (number === 0) return {};
  if (number === 7) return { ...style, reverse: true };
  if (number === 27) return { ...style, reverse: false };
  if (number >= 30 && number <= 37) return { ...style, ink: COLORS[number - 30] };
  if (number >= 90 && number <= 97) return { ...style, ink: COLORS[number - 90] };
  if (number >= 40 && number <= 47) return { ...style, back: COLORS[number - 40] };
  return style;
}

// ---- The text below it ----

function describe({ text, rows, state, keys, controls }) {
  if (text !== undefined) drawText(text);
  if (text !== undefined || rows) {
    canvas.hidden = text !== undefined;
    screen.hidden = text === undefined;
  }
  if (state) {
    document.title = `${state[0]} - puffer view`;
    document.getElementById("state").replaceChildren(...state.map(described));
    const typing = state.some((item) => item.startsWith("action: "));
    const typed = typing ? [..."0123456789", "space", "backspace", "enter"].map((name) => [name, ""]) : [];
    showButtons("keys", [...keys.slice(0, -1).flat(), ...typed]);
    showButtons("controls", keys.at(-1) ?? []);
    note.textContent = controls ? "" : "Another page controls. Press a key or a button to control from here.";
  }
}

/** Return an item of the state. The path of a saved video becomes a link. */
function described(item) {
  const span = document.createElement("span");
  const [, before, name] = item.match(/^(saved .*?)([^/]+\.mp4)$/) ?? [, item];
  span.append(before);
  if (name) {
    const link = document.createElement("a");
    Object.assign(link, { href: `videos/${encodeURIComponent(name)}`, textContent: name, download: name });
    span.append(link);
  }
  return span;
}

/** Show a button for each key, and keep those that are there already, as one may be held. */
function showButtons(id, keys) {
  const bar = document.getElementById(id);
  const old = new Map([...bar.children].map((element) => [element.dataset.key, element]));
  const shown = keys.map(([name, about]) => {
    const element = old.get(name) ?? newButton(name, about);
    const label = element.querySelector(".about");
    if (label.textContent !== about) label.textContent = about;
    return element;
  });
  bar.classList.toggle("many", keys.length > MANY);
  if (shown.length !== bar.children.length || shown.some((element, index) => bar.children[index] !== element)) {
    bar.replaceChildren(...shown);
  }
}

function newButton(name, about) {
  const isHint = !about && name.includes(" ");
  const element = document.createElement(isHint ? "span" : "button");
  element.dataset.key = name;
  if (isHint) element.className = "hint";
  const label = document.createElement("span");
  label.className = "about";
  if (isHint) {
    element.append(name, label);
    return element;
  }
  const key = document.createElement("kbd");
  key.textContent = SIGNS[name] ?? name;
  element.append(key, label);
  element.type = "button";
  element.onpointerdown = (event) => {
    event.preventDefault(); // the stage keeps the keyboard
    element.setPointerCapture(event.pointerId);
    down(name);
  };
  element.onpointerup = element.onpointercancel = () => up(name);
  element.onclick = ({ detail }) => {
    if (detail === 0) {
      // pressed with the keyboard, without a pointer
      down(name);
      up(name);
    }
  };
  return element;
}

// ---- Keyboard and mouse ----

function down(name) {
  held.add(name);
  send({ down: name });
}

function up(name) {
  if (held.delete(name)) send({ up: name });
}

/** Return the name of a key as the session knows it, or null for a key that the browser keeps. */
function nameOf({ key, ctrlKey, metaKey, altKey, target }) {
  if (ctrlKey || metaKey || altKey) return null;
  if (target.closest("button, a") && (key === "Enter" || key === " ")) return null;
  if (NAMES[key]) return NAMES[key];
  return [...key].length === 1 || OTHERS.includes(key) ? key.toLowerCase() : null;
}

addEventListener("keydown", (event) => {
  const name = nameOf(event);
  if (!name) return;
  event.preventDefault();
  if (!event.repeat) down(name);
  else if (name === "backspace") send({ down: name });
});
addEventListener("keyup", (event) => {
  const name = nameOf({ ...event, key: event.key, target: document.body });
  if (name) up(name);
});
addEventListener("blur", () => [...held].forEach(up));

canvas.addEventListener("pointerdown", ({ offsetX, offsetY, button }) => {
  const scale = canvas.width / canvas.clientWidth;
  if (button === 0) send({ click: [offsetX * scale, offsetY * scale] });
});

stage.focus();
connect();
