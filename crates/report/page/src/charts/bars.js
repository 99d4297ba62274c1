// Draws the cost per operation as stacked bars, blocks as points, and query times as bars with
// whiskers and points.
import { niceEnds } from "./lines.js";
import {
  arrow, common, css, escaped, exact, logAxis, look, nameAxis, nameRoom, placer, ROOM_ABOVE, roomBelow, segment, signed, tipLine, titleAbove,
  titleBelow, valueAxis,
} from "./look.js";

/**
 * CPU and IO per operation, with one panel per unit and one bar per variant, stacked by who used
 * them.
 */
export function cost(data, { names, hidden, width }) {
  const shown = data.variants.filter((variant) => !hidden.has(variant));
  const labels = shown.map((variant) => names[variant]);
  const room = nameRoom(["variant", ...labels], width);
  const panelHeight = shown.length * 24 + 10;
  const xAxis = data.panels.map((panel, at) => valueAxis("", { gridIndex: at, min: 0, ...titleBelow(panel.unit, width - room - 28) }));
  let top = ROOM_ABOVE;
  const grids = data.panels.map((_, at) => {
    const grid = { left: room + 10, right: 18, top, height: panelHeight };
    top += panelHeight + roomBelow(xAxis[at]) + ROOM_ABOVE;
    return grid;
  });
  const series = data.panels.flatMap((panel, at) => panel.parts.map((part, number) => ({
    type: "bar", id: `${at} ${number}`, name: part.name, stack: "panel" + at, xAxisIndex: at, yAxisIndex: at, barMaxWidth: 16,
    itemStyle: { color: css("s" + (number % 8)), borderColor: css("paper"), borderWidth: 0.5 },
    data: shown.map((variant) => part.values[data.variants.indexOf(variant)]), emphasis: { disabled: true },
  })));
  return {
    height: top - ROOM_ABOVE,
    option: {
      ...common(),
      grid: grids,
      xAxis,
      yAxis: data.panels.map((_, at) => nameAxis(labels, room, { gridIndex: at, inverse: true, ...titleAbove("variant") })),
      tooltip: { ...common().tooltip, trigger: "axis", axisPointer: { type: "shadow" }, formatter: (items) => {
        if (!items.length) { return ""; }
        const panel = data.panels[Number(items[0].seriesId.split(" ")[0])];
        return `<b>${escaped(names[shown[items[0].dataIndex]])}</b>` + items.map((item) => tipLine(
          Number(item.seriesId.split(" ")[1]), item.seriesName, `${exact(item.value)} ${panel.unit}`)).join("");
      } },
      series,
    },
    keys: data.panels.map((panel) => panel.parts.map((part, number) => [part.name, number])),
  };
}

/** Each block's rate as a point, and the median as a line. */
export function blocks(data, { names, hidden, width }) {
  const shown = data.series.filter((line) => !hidden.has(line.variant));
  const labels = shown.map((line) => names[line.variant]);
  const room = nameRoom(["variant", ...labels], width);
  const count = Math.max(1, ...shown.flatMap((line) => line.points.map((point) => point[0])));
  const rates = shown.flatMap((line) => line.points.map((point) => point[1]));
  const spread = (block) => count > 1 ? ((block - 1) / (count - 1) - 0.5) * 14 : 0;
  const series = shown.flatMap((line, row) => {
    const { color, symbol } = look(line.variant);
    // A time that was cut off by a limit is drawn hollow.
    const hollow = { color: css("paper"), borderColor: color, borderWidth: 1.6 };
    const dots = line.points.map(([block, rate, sign]) => ({
      value: [rate, row], block, sign, symbolOffset: [0, spread(block)], ...(sign ? { itemStyle: hollow } : {}),
    }));
    return [
      { type: "scatter", id: `${line.variant} blocks`, name: names[line.variant], symbol, symbolSize: 8, itemStyle: { color }, data: dots },
      { type: "scatter", id: `${line.variant} median`, name: names[line.variant] + ", median", symbol: "rect", symbolSize: [2, 24],
        itemStyle: { color: css("ink") }, data: line.median === null ? [] : [{ value: [line.median, row], sign: line.sign }] },
    ];
  });
  const low = Math.min(...rates), high = Math.max(...rates), gap = Math.max((high - low) * 0.1, high * 0.005);
  const xAxis = valueAxis("", { ...niceEnds(Math.max(0, low - gap), high + gap), ...titleBelow(data.unit, width - room - 34) });
  return {
    height: shown.length * 34 + ROOM_ABOVE + roomBelow(xAxis),
    zoom: { xAxisIndex: 0 },
    option: {
      ...common(),
      grid: { left: room + 10, right: 24, top: ROOM_ABOVE, bottom: roomBelow(xAxis) },
      xAxis,
      yAxis: nameAxis(labels, room, { inverse: true, ...titleAbove("variant") }),
      tooltip: { ...common().tooltip, trigger: "item", formatter: (item) => tipLine(
        Number(item.seriesId.split(" ")[0]), item.seriesName + (item.data.block ? `, block ${item.data.block}` : ""), `${signed(item.data.sign, exact(item.value[0]))} ${data.unit}`) },
      series,
    },
  };
}

/**
 * Seconds of each query: the median as a bar, lowest and highest as whiskers, repetitions as
 * points.
 */
export function queries(data, { names, hidden, width, choice }) {
  const axis = choice("Axis", ["linear", "log"]);
  const far = data.cut ? choice("Outliers", ["cut", "all"]) : "all";
  const shown = data.series.filter((line) => !hidden.has(line.variant));
  const room = nameRoom(data.rows, width, 0.3);
  const gap = 13, rowHeight = Math.max(24, shown.length * gap + 8);
  const most = far === "cut" ? data.cut : Infinity;
  const values = shown.flatMap((line) => line.points.flatMap((point) => [point.median, point.min, point.max, ...(point.times || [])])).filter((value) => value > 0);
  const top = Math.min(most, Math.max(...values) * 1.04);
  const least = axis === "log" ? Math.min(...values) / 1.2 : 0;
  const series = shown.map((line, number) => {
    const color = look(line.variant).color;
    return {
      type: "custom", id: `${line.variant} seconds`, name: names[line.variant], encode: { x: 0, y: 1 }, clip: false,
      data: line.points.map((point) => ({ value: [point.median, point.row], point })),
      renderItem: (params, api) => drawBar(params, api, line.points[params.dataIndex], { color, least, text: exact, offset: (number - (shown.length - 1) / 2) * gap }),
    };
  });
  const across = axis === "log" ? { ...logAxis(data.unit, [least * 1.15, top / 1.15]), min: least, max: top } : valueAxis(data.unit, { min: 0, max: top });
  // The axis ends at the longest time, which is not round.
  const axisLabel = { ...across.axisLabel, showMaxLabel: axis === "log" };
  const xAxis = { ...across, axisLabel, ...titleBelow("time, " + data.unit, width - room - 56) };
  return {
    height: data.rows.length * rowHeight + ROOM_ABOVE + roomBelow(xAxis),
    zoom: { xAxisIndex: 0 },
    option: {
      ...common(),
      grid: { left: room + 10, right: 46, top: ROOM_ABOVE, bottom: roomBelow(xAxis) },
      xAxis,
      yAxis: nameAxis(data.rows, room, { inverse: true, splitLine: { show: true, lineStyle: { color: css("line") } } }),
      tooltip: { ...common().tooltip, trigger: "item", formatter: ({ data: { point }, seriesName, seriesId }) =>
        `<b>${escaped(data.rows[point.row])}</b>` + tipLine(Number(seriesId.split(" ")[0]), seriesName, point.sign
          ? `${signed(point.sign, exact(point.median))} ${data.unit}` : `${exact(point.median)} ${data.unit} (${exact(point.min)} to ${exact(point.max)})`) },
      series,
    },
  };
}

/**
 * A bar to the median, with whiskers and points. A bound is written beside the bar, and so is a value
 * beyond the edge, because the bar's length does not show them.
 */
export function drawBar(params, api, point, at) {
  const place = placer(params, api, point.row), x = (value) => place(value).x;
  const { x: to, side } = place(point.median);
  const y = api.coord([at.least, point.row])[1] + at.offset, from = x(at.least);
  const filled = { fill: at.color, opacity: point.sign ? 0.35 : 1 };
  const children = [{
    type: "rect", shape: { x: from, y: y - 4, width: Math.max(1, to - from), height: 8 },
    style: at.isHollow ? { fill: css("paper"), stroke: at.color, lineWidth: 1.6 } : filled,
  }];
  if (point.max > point.min) {
    const ends = [place(point.min), place(point.max)];
    const cap = (end, style) => (end.side ? arrow(end, y, style) : [segment([end.x, y - 3, end.x, y + 3], style)]);
    // On a dark bar only the light edge of a whisker can be seen.
    for (const style of [{ stroke: css("paper"), lineWidth: 3 }, { stroke: css("ink"), lineWidth: 1 }]) {
      children.push(segment([ends[0].x, y, ends[1].x, y], style), ...ends.flatMap((end) => cap(end, style)));
    }
  }
  for (const time of point.times || []) {
    children.push({ type: "circle", shape: { cx: x(time), cy: y, r: 2 }, style: { fill: css("paper"), stroke: css("ink"), lineWidth: 0.8 } });
  }
  if (point.sign || side > 0) {
    children.push({ type: "text", style: { text: signed(point.sign, at.text(point.median)), x: to + 4, y, verticalAlign: "middle",
      fill: css("ink"), font: "11px system-ui, sans-serif" } });
  }
  return { type: "group", children };
}
