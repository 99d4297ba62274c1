// Shared by the charts: colours of the page, looks of variants, axes, and numbers as text.

export const COLOURS = 8;
/** Largest width of a letter in an axis label, in pixels. Only a few rare letters are wider. */
const LETTER = 7.6;
/** Height of a line in names and titles of axes, in pixels. */
const LINE_HEIGHT = 15;
/** Height of the title above the names of a vertical axis, in pixels. */
export const ROOM_ABOVE = 26;
const DASHES = ["solid", [7, 3], [2, 3], [9, 3, 2, 3], [12, 4], [4, 2], [1, 4], [6, 2, 1, 2]];

/** A colour that the style sheet names, in the scheme that is on now. */
export function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

/** Number of a variant's marker and dashes. From the ninth variant on, colours repeat with other ones. */
const form = (variant) => (variant + Math.floor(variant / COLOURS)) % COLOURS;

/**
 * Colour, dashes and marker of the variant with this number. The marker's corners are at most 1 away
 * from its middle to each side. A circle has none. They come from the style sheet, because the list
 * of variants shows the markers without a script too.
 */
export function look(variant) {
  const corners = [...css("m" + form(variant)).matchAll(/([\d.]+)% ([\d.]+)%/g)].map(([, x, y]) => [x / 50 - 1, y / 50 - 1]);
  return {
    color: css("s" + (variant % COLOURS)), type: DASHES[form(variant)], corners,
    symbol: corners.length ? `path://M${corners.join("L")}Z` : "circle",
  };
}

/** A marker for a custom series, with its middle at this place. */
export function marker({ corners }, x, y, size, style) {
  return corners.length
    ? { type: "polygon", shape: { points: corners.map(([right, down]) => [x + right * size, y + down * size]) }, style }
    : { type: "circle", shape: { cx: x, cy: y, r: size }, style };
}

/** A variant's marker in a legend or a tooltip. */
export const dot = (variant) => `<span class="dot k${variant % COLOURS} m${form(variant)}"></span>`;

/** Names of all variants in the order of the page. */
export function variants() {
  const data = pageData();
  return data ? data.variants : [];
}

let known;
/** Returns the file's data about the whole page, or `null` if it has none. */
export function pageData() {
  if (known === undefined) { known = JSON.parse((document.getElementById("page-data") || { textContent: "null" }).textContent); }
  return known;
}

export function escaped(text) {
  return String(text).replace(/[&<>"']/g, (letter) => "&#" + letter.charCodeAt(0) + ";");
}

/** A number as exact as it was recorded, with groups of thousands. */
export function exact(value) {
  if (value === null || value === undefined || Number.isNaN(value)) { return "–"; }
  const size = Math.abs(value);
  const digits = size >= 1000 ? 1 : size >= 1 ? 3 : 6;
  return value.toLocaleString("en-US", { maximumFractionDigits: digits });
}

/** A number as short text, for the marks of an axis. */
export function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6) { return trimmed(value / 1e6) + "M"; }
  if (size >= 1e4) { return trimmed(value / 1e3) + "k"; }
  return trimmed(value);
}

function trimmed(value) {
  return String(Number(value.toPrecision(4)));
}

export function ratioText(value) {
  return value === null ? "–" : value >= 9.995 ? String(Number(value.toPrecision(4))) : value >= 0.1 ? value.toFixed(2) : String(Number(value.toPrecision(3)));
}

/** Puts the sign before a value that is only a bound: `> 3.10`. */
export const signed = (sign, text) => sign ? `${sign} ${text}` : text;

/** Options that every chart has. */
export function common() {
  return {
    animation: false,
    backgroundColor: "transparent",
    textStyle: { fontFamily: "system-ui, sans-serif", color: css("ink") },
    tooltip: {
      confine: true,
      appendTo: "body",
      backgroundColor: css("paper"),
      borderColor: css("line"),
      textStyle: { color: css("ink"), fontSize: 12 },
      extraCssText: "max-width: 90vw; white-space: normal;",
    },
  };
}

const TEXT = () => ({ color: css("muted"), fontSize: 12, hideOverlap: true });
const LINE = () => ({ lineStyle: { color: css("line") } });

/**
 * The title below a horizontal axis. A title that is longer than the axis takes several lines, so
 * that a narrow screen does not cut it.
 */
export function titleBelow(title, width) {
  const nameTextStyle = { color: css("muted"), fontSize: 12, lineHeight: LINE_HEIGHT, align: "center", verticalAlign: "top" };
  return { name: wrapped(title, width), nameLocation: "middle", nameGap: 24, nameTextStyle };
}

/** Height of what is below a horizontal axis: the numbers of its marks, and its title. */
export function roomBelow({ name, nameGap }) {
  return nameGap + name.split("\n").length * LINE_HEIGHT + 5;
}

/** The title above the names of a vertical axis that begins at the top. It needs `ROOM_ABOVE`. */
export function titleAbove(title) {
  return { name: title, nameLocation: "start", nameGap: 8, nameTextStyle: { color: css("muted"), fontSize: 12, align: "right" } };
}

/** An axis of numbers. */
export function valueAxis(name, more) {
  return {
    type: "value", name, nameTextStyle: { color: css("muted"), fontSize: 12, align: "left" }, nameGap: 8,
    axisLabel: { ...TEXT(), formatter: short }, axisLine: { show: false, ...LINE() }, splitLine: LINE(), axisTick: LINE(),
    ...more,
  };
}

/** A logarithmic axis that ends 15 % beyond the lowest and the highest value. */
export function logAxis(name, values, more) {
  const known = values.filter((value) => value > 0);
  if (!known.length) { return valueAxis(name, more); }
  const low = Math.min(...known), high = Math.max(...known);
  const ends = { min: low / 1.15, max: high * 1.15 };
  const marks = niceMarks(ends.min, ends.max);
  return {
    ...valueAxis(name), type: "log", ...ends,
    axisLabel: { ...TEXT(), formatter: short, customValues: marks }, axisTick: { ...LINE(), customValues: marks },
    splitLine: { show: false }, ...more,
  };
}

/** Returns marks for a logarithmic axis, with as few in each decade as give at least four. */
export function niceMarks(low, high) {
  const marks = (steps) => {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
      for (const step of steps) {
        const mark = Number((step * 10 ** power).toPrecision(6));
        if (mark >= low && mark <= high) { found.push(mark); }
      }
    }
    return found;
  };
  const ways = [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 5, 7], [1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 4, 5, 6, 7, 8, 9]];
  return ways.map(marks).find((found) => found.length >= 4) || marks(ways[ways.length - 1]);
}

/**
 * Returns the function that places values of a custom series in its row: `x` in pixels, held at the
 * edges of what is shown, and the side on which the value lies beyond them, or 0.
 */
export function placer({ coordSys }, api, row) {
  return (value) => {
    const [x] = api.coord([value, row]), held = Math.max(coordSys.x, Math.min(coordSys.x + coordSys.width, x));
    return { x: held, side: Math.abs(x - held) > 0.5 ? Math.sign(x - held) : 0 };
  };
}

/** A line of a custom series between two places. */
export const segment = ([x1, y1, x2, y2], style) => ({ type: "line", shape: { x1, y1, x2, y2 }, style });

/** The tip of an arrow at the edge of a chart, where a line goes on beyond it. There is none at other places. */
export function arrow({ x, side }, y, style) {
  return side ? [segment([x - side * 5, y - 4, x, y], style), segment([x - side * 5, y + 4, x, y], style)] : [];
}

/** An axis of names, which are broken into lines and never cut. */
export function nameAxis(names, width, more) {
  return {
    type: "category", data: names.map((name) => wrapped(name, width)), axisTick: { show: false }, axisLine: LINE(),
    axisLabel: { color: css("ink"), fontSize: 12, lineHeight: LINE_HEIGHT, interval: 0 }, ...more,
  };
}

/** Breaks a name into lines of at most this width, after a space or a punctuation mark if possible. */
export function wrapped(name, width) {
  const columns = Math.max(6, Math.floor(width / LETTER)), lines = [];
  let rest = name;
  while (rest.length > columns) {
    const lastOf = (signs) => Math.max(...signs.map((sign) => rest.lastIndexOf(sign, columns - 1)));
    const at = [lastOf([" "]), lastOf(["-", ".", "_", ",", "=", "/"])].find((at) => at > columns / 3);
    const end = at ? at + 1 : columns;
    lines.push(rest.slice(0, end));
    rest = rest.slice(end);
  }
  return [...lines, rest].join("\n");
}

/**
 * Width in pixels for the longest of these names, but at most `most` times `width` or 90 pixels,
 * whichever is larger.
 */
export function nameRoom(names, width, most = 0.42) {
  const letters = Math.max(0, ...names.map((name) => name.length));
  return Math.min(letters * LETTER + 8, Math.max(90, width * most));
}

/** A line of a tooltip: the variant's mark, its name and a value. */
export function tipLine(variant, name, text) {
  return `<div>${dot(variant)}${escaped(name)}: <b>${escaped(text)}</b></div>`;
}
