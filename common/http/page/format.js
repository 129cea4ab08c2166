// Numbers and durations as people read them, and elements made without any markup from text.

export const unknown = "–";

// An element; a string among the children becomes text and nothing else, whoever wrote it.
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

export function byId(id) {
  return document.getElementById(id);
}

// Changes the text only where it differs, so that screen readers and selections are left alone.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function count(value) {
  return value === null ? unknown : Math.round(value).toLocaleString("en");
}

export function fixed(value, digits) {
  return value === null ? unknown : value.toFixed(digits);
}

// "123,456", "12.3 M": as many digits as one reads at a glance.
export function brief(value) {
  if (value === null) return unknown;
  const steps = [[1e12, " T"], [1e9, " G"], [1e6, " M"]];
  for (const [from, unit] of steps) {
    if (Math.abs(value) >= from) return (value / from).toPrecision(3) + unit;
  }
  return Math.abs(value) >= 100 || Number.isInteger(value) ? count(value) : value.toPrecision(3);
}

export function bytes(value) {
  if (value === null) return unknown;
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    ++unit;
  }
  return (unit === 0 ? Math.round(value) : value.toPrecision(3)) + " " + units[unit];
}

export function duration(seconds) {
  if (seconds === null) return unknown;
  if (seconds < 10 && !Number.isInteger(seconds)) return seconds.toFixed(1) + " s";
  if (seconds < 100) return Math.round(seconds) + " s";
  const minutes = Math.round(seconds / 60);
  if (minutes < 100) return minutes + " min";
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return hours + " h " + String(minutes % 60).padStart(2, "0") + " min";
  return Math.floor(hours / 24) + " d " + (hours % 24) + " h";
}

export function percent(part, digits = 0) {
  return part === null ? unknown : (100 * part).toFixed(digits) + " %";
}

export function clock(wallSeconds) {
  return new Date(wallSeconds * 1000).toLocaleTimeString("en-GB");
}

// A colour of its own for each holder: neighbours in the order of names differ most.
export function holderColour(place, isDark) {
  const hue = (place * 137.508 + 155) % 360;
  const ring = Math.floor(place / 9) % 3;
  return isDark ? `hsl(${hue} ${55 - ring * 8}% ${56 + ring * 9}%)`
                : `hsl(${hue} ${52 - ring * 6}% ${44 - ring * 7}%)`;
}

// Lets the person keep `blob` as a file.
export function save(blob, name) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// What one rem is, in pixels: canvases grow with the text around them.
export function rem() {
  return parseFloat(getComputedStyle(document.documentElement).fontSize);
}

export const darkMode = matchMedia("(prefers-color-scheme: dark)");
