// Whether each value of each chart has a mark: runs in the page.

/** Of each figure: how many values its data has, and which of them have no mark at their place. */
export function marksOf() {
  /** Corners of what is drawn, and middles of small marks, in pixels of the chart. */
  function placesOf(svg) {
    const box = svg.getBoundingClientRect(), places = [];
    for (const path of svg.querySelectorAll("path")) {
      const bounds = path.getBoundingClientRect();
      if (bounds.width === 0 && bounds.height === 0) { continue; }
      if (bounds.width < 26 && bounds.height < 30) { places.push([bounds.left + bounds.width / 2 - box.left, bounds.top + bounds.height / 2 - box.top]); }
      places.push([bounds.right - box.left, bounds.top + bounds.height / 2 - box.top]);
      const matrix = path.getCTM(), numbers = (path.getAttribute("d").match(/-?\d+(\.\d+)?(e-?\d+)?/g) || []).map(Number);
      for (let at = 0; at + 1 < numbers.length; at += 2) {
        const [x, y] = [numbers[at], numbers[at + 1]];
        places.push([matrix.a * x + matrix.c * y + matrix.e, matrix.b * x + matrix.d * y + matrix.f]);
      }
    }
    return places;
  }
  const grid = (index) => ({ gridIndex: index });
  /** The percentile that a sweep shows. */
  const percentile = (chart) => chart.tools.querySelector("select").value;
  /** What is expected of each kind: finder of axes, place on them, and what it stands for. */
  const expected = {
    // A far value has its mark at the edge.
    ratios: ({ data, pixel, chart }) => data.points.filter((point) => point[2] > 0).map(([row, variant, value]) => {
      const { min, max } = chart.instance.getOption().xAxis[0];
      const [x, y] = pixel({ xAxisIndex: 0, yAxisIndex: 0 }, [Math.max(min, Math.min(max, chart.drawn.scale.of(value))), row]);
      return { x, y, across: true, what: `${data.rows[row]} ${variant} ${value}` };
    }),
    sweep: ({ data, pixel, chart }) => data.series.flatMap((line) => data.connections.flatMap((number, at) => [[0, line.rate[at]], [1, line[percentile(chart)][at]]]
      .filter(([, value]) => value > 0).map(([panel, value]) => { const [x, y] = pixel(grid(panel), [number, value]); return { x, y, what: `${number} ${value}` }; }))),
    percentiles: ({ data, pixel, chart }) => data.series.flatMap((line, number) => line.ms.map((value, at) => [at, value]).filter(([, value]) => value !== null)
      .map(([at, value]) => { const [x, y] = pixel(grid(0), [chart.instance.getOption().series[number].data[at][0], value]); return { x, y, what: `p${data.percentiles[at]} ${value}` }; })),
    seconds: ({ data, pixel }) => data.panels.flatMap((panel, number) => panel.lines.flatMap((line) => line.y.map((value, at) => [line.x ? line.x[at] : line.from + at, value])
      .filter(([, value]) => value !== null).map(([second, value]) => { const [x, y] = pixel(grid(number), [second, value]); return { x, y, what: `${panel.name}, second ${second}: ${value}` }; }))),
    blocks: ({ data, pixel }) => data.series.flatMap((line, row) => line.points.map(([block, rate]) => {
      const [x, y] = pixel(grid(0), [rate, row]);
      return { x, y, across: true, what: `block ${block}: ${rate}` };
    })),
    interaction: ({ data, pixel }) => data.lines.flatMap((line) => line.rates.map((rate, at) => [at, rate]).filter(([, rate]) => rate !== null)
      .map(([at, rate]) => { const [x, y] = pixel(grid(0), [at, rate]); return { x, y, what: `${line.level} ${rate}` }; })),
    history: ({ data, pixel }) => data.values.map((value, run) => [run, value]).filter(([, value]) => value !== null)
      .map(([run, value]) => { const [x, y] = pixel(grid(0), [run, value]); return { x, y, what: `run ${run}: ${value}` }; }),
    cost: ({ data, pixel }) => data.panels.flatMap((panel, number) => data.variants.flatMap((variant, row) => {
      let sum = 0;
      return panel.parts.filter((part) => part.values[row] > 0).map((part) => {
        sum += part.values[row];
        const [x, y] = pixel(grid(number), [sum, row]);
        return { x, y, across: true, what: `${part.name} of variant ${variant}: ${part.values[row]}` };
      });
    })),
    queries: ({ data, pixel }) => data.series.flatMap((line) => line.points.map((point) => {
      const [x, y] = pixel(grid(0), [Math.min(point.median, data.cut || Infinity), point.row]);
      return { x, y, across: true, what: `${data.rows[point.row]}: ${point.median}` };
    })),
  };
  return [...document.querySelectorAll("figure.chart")].filter((figure) => figure.chart.instance).map((figure) => {
    const chart = figure.chart, data = JSON.parse(figure.querySelector("script").textContent);
    const pixel = (finder, value) => chart.instance.convertToPixel(finder, value);
    const places = placesOf(figure.querySelector("svg"));
    const wanted = expected[data.kind]({ data, pixel, chart });
    const isThere = ({ x, y, across }) => places.some(([left, top]) => Math.abs(left - x) < 1.5 && Math.abs(top - y) < (across ? 40 : 1.5));
    return { id: figure.id, kind: data.kind, values: wanted.length, missing: wanted.filter((mark) => !isThere(mark)).map((mark) => mark.what).slice(0, 5) };
  });
}
