// Ratios with intervals: bars where a group has few steps, as in published reports, and otherwise
// dots on a logarithmic axis. Far values are at the edge and labelled.
import { drawBar } from "./bars.js";
import { niceEnds } from "./lines.js";
import {
  arrow, common, css, escaped, look, marker, nameAxis, nameRoom, placer, ROOM_ABOVE, ratioText, roomBelow, segment, signed, tipLine, titleBelow,
  valueAxis, wrapped,
} from "./look.js";
import { commonRange, ratioMarks } from "./range.js";

const isDecided = (verdict) => !!verdict && verdict !== "undecided" && verdict !== "invalid";

/** One dot with its interval, or an arrow at the edge. */
function drawPoint(params, api, point, at) {
  const place = placer(params, api, point.row);
  const end = place(Math.log(point.value)).x;
  const y = api.coord([0, point.row])[1] + at.offset;
  const log = Math.log(point.value), { side: far } = place(log);
  const children = [];
  if (point.low > 0 && point.high > 0) {
    const ends = [point.low, point.high].map((value) => place(Math.log(value))), style = { stroke: at.color, lineWidth: 1.5 };
    children.push(segment([ends[0].x, y, ends[1].x, y], style), ...ends.flatMap((end) => arrow(end, y, style)));
  }
  const fill = isDecided(point.verdict) ? at.color : css("paper");
  const label = (text, beside, side) => children.push({
    type: "text",
    style: {
      text, x: beside, y, align: side > 0 ? "left" : "right", verticalAlign: "middle",
      fill: css("ink"), font: "11px system-ui, sans-serif", stroke: css("paper"), lineWidth: 3,
    },
  });
  if (!far && point.sign) {
    // A bound points to the side on which the true ratio lies. If that may be either side, it
    // points to both.
    const tips = { ">": [0, 8], "<": [8, 0] }[point.sign] || [6, 6];
    const points = [[end - tips[0], y], [end, y - 5], [end + tips[1], y], [end, y + 5]];
    children.push({ type: "polygon", shape: { points }, style: { fill, stroke: at.color, lineWidth: 1.6 } });
    // The label is on the side that has room.
    const side = log > 0 ? -1 : 1;
    label(signed(point.sign, ratioText(point.value)), end + side * 12, side);
  } else if (far) {
    const points = [[end - far * 8, y - 5], [end, y], [end - far * 8, y + 5]];
    children.push({ type: "polygon", shape: { points }, style: { fill, stroke: at.color, lineWidth: 1.6 } });
    label(signed(point.sign, ratioText(point.value)), end - far * 12, -far);
  } else {
    children.push(marker(at, end, y, 4.5, { fill, stroke: at.color, lineWidth: 1.6 }));
  }
  return { type: "group", children };
}

/** Largest number of steps in a chart of bars, and how many variants it compares. */
const BARS = { steps: 6, least: 2, most: 5 };

const hasBars = ({ rows, variants }) => rows.length <= BARS.steps && variants.length >= BARS.least && variants.length <= BARS.most;

/** The scale of bars: they begin at 0, with a line at 1. */
function barScale(range) {
  const max = Math.exp(range.high), { interval } = niceEnds(0, max);
  const marks = Array.from({ length: Math.floor(max / interval) + 1 }, (_, at) => at * interval);
  return { isBars: true, of: (value) => value, ratio: (place) => place, min: 0, max, marks: [...new Set([...marks, 1])] };
}

/** The scale of dots: logarithms, so that 0.5 is as far from 1 as 2. */
function dotScale({ low, high }, length) {
  const marks = ratioMarks(Math.exp(low), Math.exp(high), Math.max(3, Math.floor(length / 48)));
  return { isBars: false, of: Math.log, ratio: Math.exp, min: low, max: high, marks: marks.map(Math.log) };
}

function ratioAxis(scale, title, length) {
  return valueAxis("", {
    min: scale.min, max: scale.max, ...titleBelow(title, length), axisLabel: {
      color: css("muted"), fontSize: 12, customValues: scale.marks, hideOverlap: true,
      formatter: (place) => String(Number(scale.ratio(place).toPrecision(4))),
    },
    axisTick: { customValues: scale.marks, lineStyle: { color: css("line") } }, splitLine: { show: false },
  });
}

/** Lines at 1 and at both ends of the margin. They are below dots, because they would strike out their labels. */
function referenceLines(scale, margin) {
  const line = (ratio, type, color) => ({ xAxis: scale.of(ratio), lineStyle: { color: css(color), type, width: 1 } });
  return {
    silent: true, symbol: "none", label: { show: false }, animation: false, z: scale.isBars ? 3 : 1,
    data: [line(1, "solid", "ink"), line(1 + margin, "dashed", "muted"), line(1 / (1 + margin), "dashed", "muted")],
  };
}

/** The rows in the chosen order: of the plan, or by the highest ratio. */
function rowsInOrder(data, by, hidden) {
  const highest = (row) => Math.max(0, ...data.points.filter((point) => point[0] === row && !hidden.has(point[1])).map((point) => Math.log(point[2])));
  const order = data.rows.map((_, row) => row);
  return by === "effect" ? order.sort((a, b) => highest(b) - highest(a)) : order;
}

/** One variant's marks, at this distance from the middle of each row. */
function seriesOf(variant, name, points, scale, offset) {
  const at = { ...look(variant), offset, least: 0, text: ratioText };
  const bar = (point) => ({ row: point.row, median: point.value, min: point.low, max: point.high, sign: point.sign });
  return {
    type: "custom", name, encode: { x: 0, y: 1 }, clip: false,
    data: points.map((point) => ({ value: [scale.of(point.value), point.row, point.value], point })),
    renderItem: (params, api) => {
      const point = points[params.dataIndex];
      return scale.isBars
        ? drawBar(params, api, bar(point), { ...at, isHollow: !isDecided(point.verdict) }) : drawPoint(params, api, point, at);
    },
  };
}

function tipOf(point, row, name) {
  const interval = point.low > 0 ? ` (95 % interval ${ratioText(point.low)} to ${ratioText(point.high)})` : "";
  const verdict = point.verdict ? `, ${point.verdict}` : "";
  return `<b>${escaped(row)}</b>` + tipLine(point.variant, name, signed(point.sign, point.value.toFixed(4)) + interval + verdict);
}

export function ratios(data, { names, hidden, width, choice, peers }) {
  const order = rowsInOrder(data, choice("Sort", ["sequence", "effect"]), hidden);
  const rows = order.map((row) => data.rows[row]);
  const place = new Map(order.map((row, at) => [row, at]));
  const shown = data.variants.filter((variant) => !hidden.has(variant));
  const points = data.points.filter((point) => point[2] > 0 && !hidden.has(point[1])).map(
    ([row, variant, value, low, high, verdict, sign]) => ({ row: place.get(row), variant, value, low, high, verdict, sign }));
  const isBars = hasBars(data), room = nameRoom(rows, width), range = commonRange(peers());
  // A bar that ends at the edge has its value beside it.
  const right = isBars ? 46 : 18, length = width - room - 10 - right;
  const scale = isBars ? barScale(range) : dotScale(range, length);
  const gap = isBars ? 13 : 11;
  const series = shown.map((variant, number) => seriesOf(
    variant, names[variant], points.filter((point) => point.variant === variant), scale, (number - (shown.length - 1) / 2) * gap));
  if (series.length) { series[0].markLine = referenceLines(scale, data.margin); }
  const lines = (row) => wrapped(row, room).split("\n").length;
  const rowHeight = Math.max(22, shown.length * gap + 8, ...rows.map((row) => lines(row) * 15 + 4));
  const xAxis = ratioAxis(scale, `${data.of} ÷ ${data.of} of ${names[data.base]}`, length);
  return {
    height: rows.length * rowHeight + ROOM_ABOVE + roomBelow(xAxis),
    zoom: { xAxisIndex: 0 },
    scale,
    option: {
      ...common(),
      grid: { left: room + 10, right, top: ROOM_ABOVE, bottom: roomBelow(xAxis) },
      xAxis,
      yAxis: nameAxis(rows, room, { inverse: true, splitLine: { show: true, lineStyle: { color: css("line") } } }),
      tooltip: { ...common().tooltip, trigger: "item", formatter: ({ data: { point } }) => tipOf(point, rows[point.row], names[point.variant]) },
      series,
    },
  };
}
