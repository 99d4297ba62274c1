// Draws lines over connections, over percentiles, over seconds, and over runs.
import { common, css, escaped, exact, logAxis, look, nameAxis, roomBelow, tipLine, titleBelow, valueAxis } from "./look.js";

/** Returns the ECharts series of one variant's line. */
function lineOf(variant, name, data, more) {
  const { color, type, symbol } = look(variant);
  return {
    type: "line", name, data, symbol, symbolSize: 8, connectNulls: false, itemStyle: { color }, lineStyle: { color, type, width: 1.8 },
    emphasis: { disabled: true }, ...more,
  };
}

/**
 * Returns the tooltip's formatter. The tooltip has the values of all lines at one position of the
 * horizontal axis.
 */
function tipOfAxis(head, unit) {
  return (items) => {
    const isLine = (item) => item.value && item.value[1] !== null && item.value[1] !== undefined && !(item.seriesId || "").endsWith("spread");
    const lines = items.filter(isLine)
      .map((item) => tipLine(item.seriesId ? Number(item.seriesId.split(" ")[0]) : 0, item.seriesName, exact(item.value[1]) + unit(item)));
    return items.length ? `<b>${escaped(head(items[0].value[0]))}</b>${lines.join("")}` : "";
  };
}

const pointer = () => ({ trigger: "axis", axisPointer: { type: "line", lineStyle: { color: css("muted") } } });

/** Vertical lines from the lowest to the highest block at each number of connections. */
function spreads(line, connections, key, panel) {
  const ends = connections.map((number, at) => [number, ...(line.spread[key][at] || [0, 0])]);
  return {
    type: "custom", id: `${line.variant} ${panel} spread`, silent: true, xAxisIndex: panel, yAxisIndex: panel,
    encode: { x: 0, y: [1, 2] }, data: ends.filter(([, low]) => low > 0),
    renderItem: (_, api) => {
      const [x, y1] = api.coord([api.value(0), api.value(1)]), y2 = api.coord([api.value(0), api.value(2)])[1];
      return { type: "line", shape: { x1: x, y1, x2: x, y2 }, style: { stroke: look(line.variant).color, lineWidth: 1.2, opacity: 0.6 } };
    },
  };
}

const PERCENTILES = ["p99", "p95", "p50"];

/**
 * Percentiles to choose from. The first is the highest one that no step lacks: with few operations a
 * step has no p99, and the line would have a gap.
 */
export function percentilesOf({ series, connections }) {
  const has = (key, at) => series.some((line) => line[key][at] !== null);
  const isWhole = (key) => connections.every((_, at) => has(key, at) || !PERCENTILES.some((other) => has(other, at)));
  return [...PERCENTILES.filter(isWhole), ...PERCENTILES.filter((key) => !isWhole(key))];
}

/**
 * Rate, and the chosen percentile of response times, against connections. At first both axes are
 * logarithmic.
 */
export function sweep(data, { names, hidden, width, choice }) {
  const which = choice("Response time", percentilesOf(data)), isLinear = choice("Axes", ["log-log", "log-linear"]) === "log-linear";
  const upwards = (title, values, more) => isLinear ? valueAxis(title, { min: 0, ...more }) : { ...logAxis(title, values), ...more };
  const shown = data.series.filter((line) => !hidden.has(line.variant));
  // A rate or a time of zero has no place on a logarithmic axis, so the line has a gap there.
  const known = (value) => (isLinear || value > 0 ? value : null);
  const pairs = (values) => data.connections.map((number, at) => [number, known(values[at])]);
  const axis = (gridIndex) => ({
    ...logAxis("", data.connections), gridIndex, min: data.connections[0] / 1.1,
    max: data.connections[data.connections.length - 1] * 1.1, ...titleBelow("connections", width), axisLabel: { color: css("muted"), customValues: data.connections, hideOverlap: true, formatter: String },
    axisTick: { customValues: data.connections },
  });
  const series = shown.flatMap((line) => [
    lineOf(line.variant, names[line.variant], pairs(line.rate), { id: line.variant + " rate" }),
    lineOf(line.variant, names[line.variant], pairs(line[which]), { id: line.variant + " time", xAxisIndex: 1, yAxisIndex: 1 }),
    ...[["rate", 0], [which, 1]].map(([key, panel]) => spreads(line, data.connections, key, panel)),
  ]);
  const all = (key) => shown.flatMap((line) => [...line[key], ...line.spread[key].filter(Boolean).flat()]);
  return {
    height: 482,
    zoom: { xAxisIndex: [0, 1] },
    option: {
      ...common(),
      axisPointer: { link: [{ xAxisIndex: "all" }] },
      grid: [{ left: 58, right: 18, top: 28, height: 170 }, { left: 58, right: 18, top: 262, height: 170 }],
      xAxis: [axis(0), axis(1)],
      yAxis: [upwards(data.unit, all("rate")), upwards(which + " response time, ms", all(which), { gridIndex: 1 })],
      tooltip: { ...common().tooltip, ...pointer(), formatter: tipOfAxis((x) => `${x} connections`, (item) => item.seriesId.endsWith("rate") ? " " + data.unit : " ms " + which) },
      series,
    },
  };
}

/**
 * Response times by percentile. The horizontal axis is −log10(1 − percentile), which gives the
 * slowest operations most of the width.
 */
export function percentiles(data, { names, hidden, width }) {
  const place = (percentile) => -Math.log10(Math.max(1 - percentile / 100, 1e-6));
  const shown = data.series.filter((line) => !hidden.has(line.variant));
  const furthest = Math.max(1, ...data.percentiles.filter((p) => p < 100).map(place));
  const at = (percentile) => percentile >= 100 ? furthest + 0.4 : place(percentile);
  const marks = [0, 50, 90, 99, 99.9, 99.99, 100].filter((p) => p === 100 || data.percentiles.includes(p) || p === 0);
  const text = new Map(data.percentiles.map((p) => [at(p).toFixed(4), p === 100 ? "max" : "p" + p]));
  const series = shown.map((line) => lineOf(line.variant, names[line.variant],
    data.percentiles.map((p, index) => [at(p), line.ms[index]]), { id: line.variant + " ms", symbolSize: 5 }));
  const custom = marks.map(at);
  return {
    height: 284,
    zoom: { xAxisIndex: 0 },
    option: {
      ...common(),
      grid: { left: 58, right: 24, top: 28, bottom: 44 },
      xAxis: valueAxis("", {
        min: 0, max: furthest + 0.5, ...titleBelow("percentile", width),
        axisLabel: { color: css("muted"), customValues: custom, hideOverlap: true, formatter: (x) => text.get(x.toFixed(4)) || (x === 0 ? "p0" : "") },
        axisTick: { customValues: custom }, splitLine: { show: false },
      }),
      yAxis: logAxis("response time, ms", shown.flatMap((line) => line.ms)),
      tooltip: { ...common().tooltip, ...pointer(), formatter: tipOfAxis((x) => text.get(x.toFixed(4)) || "", () => " ms") },
      series,
    },
  };
}

const EVENT_WORDS = { checkpoint: "checkpoint", restart: "restart of the server", lost: "lost connections", stall: "stall" };

/** Events of the server as lines across the first panel. */
function eventLines(events, names) {
  return events.map(({ at, what, variant }) => ({
    xAxis: at, name: `${names[variant]}: ${EVENT_WORDS[what] || what}`,
    lineStyle: { color: look(variant).color, type: "dotted", width: 1 },
    label: { show: true, formatter: (EVENT_WORDS[what] || what)[0].toUpperCase(), color: look(variant).color, fontSize: 10, distance: 2 },
  }));
}

/** Gives a value between two gaps a mark, because no line leads to it. */
function lonely(points) {
  const isGap = (at) => !points[at] || points[at][1] === null;
  return points.map((value, at) => (!isGap(at) && isGap(at - 1) && isGap(at + 1) ? { value, symbol: "circle", symbolSize: 5 } : value));
}

/**
 * Rate, longest response time and the device by second, in panels below each other with one common
 * axis.
 */
export function seconds(data, { names, hidden, width }) {
  const panels = data.panels.filter((panel) => panel.lines.some((line) => !hidden.has(line.variant)));
  const [first, other, gap] = [150, 96, 34];
  const left = 58;
  let top = 26;
  const grids = panels.map((_, at) => {
    const height = at ? other : first;
    const grid = { left, right: 18, top, height };
    top += height + gap;
    return grid;
  });
  const series = panels.flatMap((panel, at) => panel.lines.filter((line) => !hidden.has(line.variant)).map((line, number) => {
    const points = line.x ? line.x.map((x, index) => [x, line.y[index]]) : line.y.map((y, index) => [index + (line.from || 0), y]);
    return lineOf(line.variant, names[line.variant] + (line.block ? `, block ${line.block}` : ""), lonely(points), {
      id: `${line.variant} ${at} ${line.block}`, xAxisIndex: at, yAxisIndex: at, symbol: "none", showAllSymbol: true,
      lineStyle: { color: look(line.variant).color, width: data.blocks > 1 ? 1 : 1.4, type: look(line.variant).type },
      markLine: at === 0 && number === 0 && data.events.length ? {
        silent: true, symbol: "none", animation: false, data: eventLines(data.events.filter((event) => !hidden.has(event.variant)), names),
      } : undefined,
    });
  }));
  // The panels share one axis, so only the lowest has its marks and its title.
  const isLast = (at) => at === panels.length - 1;
  const xAxis = panels.map((_, at) => valueAxis("", {
    gridIndex: at, min: 0, max: data.end, ...(isLast(at) ? titleBelow("second of the window", width) : {}), splitLine: { show: false },
    axisLabel: { color: css("muted"), fontSize: 12, show: isLast(at), hideOverlap: true },
  }));
  return {
    height: top + 18,
    zoom: { xAxisIndex: panels.map((_, at) => at) },
    group: data.group,
    option: {
      ...common(),
      axisPointer: { link: [{ xAxisIndex: "all" }] },
      grid: grids,
      xAxis,
      yAxis: panels.map((panel, at) => valueAxis(panel.name, { gridIndex: at, min: 0, splitNumber: at ? 2 : 4 })),
      tooltip: {
        ...common().tooltip, ...pointer(),
        formatter: (items) => secondsTip(items, panels, data.events, names),
      },
      series,
    },
  };
}

function secondsTip(items, panels, events, names) {
  if (!items.length) { return ""; }
  const second = items[0].value[0];
  const parts = panels.map((panel, at) => {
    const of = items.filter((item) => item.axisIndex === at && item.value[1] !== null).slice(0, 8);
    const lines = of.map((item) => tipLine(Number(item.seriesId.split(" ")[0]), item.seriesName, exact(item.value[1])));
    return of.length ? `<div class="tip-head">${escaped(panel.name)}</div>${lines.join("")}` : "";
  });
  const now = events.filter((event) => Math.abs(event.at - second) < 1)
    .map((event) => `<div>${escaped(names[event.variant])}: ${EVENT_WORDS[event.what] || escaped(event.what)}</div>`);
  return `<b>second ${second}</b>${parts.join("")}${now.join("")}`;
}

/** Interaction of two factors, with one line per level of the second factor. */
export function interaction(data, { width }) {
  const series = data.lines.map((line, number) => lineOf(number, `${data.second} = ${line.level}`, line.rates, { id: `${number} rate` }));
  const known = data.lines.flatMap((line) => line.rates).filter((rate) => rate > 0);
  const xAxis = nameAxis(data.levels, width / Math.max(1, data.levels.length), titleBelow(data.first, width - 76));
  return {
    height: 216 + roomBelow(xAxis),
    option: {
      ...common(),
      grid: { left: 58, right: 18, top: 28, bottom: roomBelow(xAxis) },
      xAxis,
      yAxis: logAxis(data.unit, known),
      tooltip: { ...common().tooltip, trigger: "axis", formatter: (items) => items.length ? `<b>${escaped(data.first)} = ${escaped(data.levels[items[0].dataIndex])}</b>` +
        items.map((item) => tipLine(Number(item.seriesId.split(" ")[0]), item.seriesName, exact(item.value) + " " + data.unit)).join("") : "" },
      series,
    },
    legend: data.lines.map((line) => `${data.second} = ${line.level}`),
  };
}

/** A series over runs with its levels and changes. */
export function history(data, { width }) {
  const points = data.values.map((value, run) => [run, value]);
  const known = data.values.filter((value) => value !== null);
  const low = Math.min(...known), high = Math.max(...known);
  const room = Math.max(high - low, 0.02 * Math.abs(high)) * 0.12;
  const first = { ...lineOf(0, data.name, points, { id: "0 value", lineStyle: { color: look(0).color, width: 1 } }) };
  first.markLine = {
    silent: true, symbol: "none", animation: false,
    data: data.changes.map((change) => ({ xAxis: change.at - 0.5, lineStyle: { color: css("muted"), type: "dashed" },
      label: { show: true, formatter: change.word, color: css("ink"), fontSize: 11, distance: 4 } })),
  };
  const levels = data.levels.map(([from, to, value], number) => ({
    type: "line", id: `level ${number}`, name: "level", symbol: "none", silent: true, lineStyle: { color: css("ink"), width: 1.2 },
    data: [[from - 0.5, value], [to - 0.5, value]], tooltip: { show: false }, emphasis: { disabled: true },
  }));
  const marks = niceRuns(data.runs.length);
  return {
    height: 252,
    zoom: { xAxisIndex: 0 },
    option: {
      ...common(),
      grid: { left: 66, right: 24, top: 40, bottom: 44 },
      xAxis: valueAxis("", { min: -0.5, max: data.runs.length - 0.5, ...titleBelow("run, by date", width), splitLine: { show: false },
        axisLabel: { color: css("muted"), customValues: marks, hideOverlap: true, formatter: (run) => (data.runs[run] || ["", ""])[1] },
        axisTick: { customValues: marks } }),
      yAxis: valueAxis(data.unit, { ...niceEnds(low - room, high + room) }),
      tooltip: { ...common().tooltip, trigger: "axis", formatter: (items) => {
        const item = items.find((item) => item.seriesId === "0 value");
        return item ? `<b>${escaped(data.runs[item.value[0]][0])}</b>${tipLine(0, data.name, exact(item.value[1]) + " " + data.unit)}` : "";
      } },
      series: [first, ...levels],
    },
  };
}

/** Returns round numbers around the values as ends of an axis. */
export function niceEnds(low, high) {
  const rough = Math.max((high - low) / 4, Math.abs(high) * 1e-6, 1e-9), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough);
  const round = (value) => Number(value.toPrecision(12));
  return { min: round(Math.floor(low / step) * step), max: round(Math.ceil(high / step) * step), interval: step };
}

function niceRuns(count) {
  const shown = Math.min(5, count);
  return Array.from({ length: shown }, (_, number) => shown > 1 ? Math.round(number * (count - 1) / (shown - 1)) : 0);
}
