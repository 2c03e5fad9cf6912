/**
 * One plot over time, kept as wide as its place and in the colours of the page.
 *
 * Owns: the uPlot instance of one place. Never: the figures.
 * Used by: app.ts.
 */
import uPlot from 'uplot';
import { browser, type Element } from './browser.js';

export interface Line {
  readonly label: string;
  readonly colour: string;
}

const HEIGHT = 160;

function inkColour(): string {
  return browser.matchMedia('(prefers-color-scheme: dark)').matches ? '#b9c2cf' : '#45505f';
}

export class Plot {
  private readonly plot: uPlot;

  constructor(
    private readonly place: Element,
    title: string,
    lines: readonly Line[],
  ) {
    const axis = { stroke: inkColour, grid: { stroke: '#8884', width: 1 } };
    const series = lines.map(({ label, colour }) => {
      return { label, stroke: colour, width: 2, spanGaps: true, points: { show: false } };
    });
    const options = {
      title,
      width: Math.max(200, place.clientWidth),
      height: HEIGHT,
      cursor: { show: false },
      series: [{}, ...series],
      axes: [axis, { ...axis, size: 60 }],
      scales: { y: { range: (_: unknown, _least: number, most: number) => [0, most * 1.1 || 1] } },
    };
    const empty = [[], ...lines.map(() => [])];
    this.plot = new uPlot(
      options as unknown as uPlot.Options,
      empty as unknown as uPlot.AlignedData,
      place as unknown as HTMLElement,
    );
    browser.addEventListener('resize', () => this.fit());
  }

  show(columns: readonly (readonly (number | null)[])[]): void {
    this.plot.setData(columns as unknown as uPlot.AlignedData);
  }

  private fit(): void {
    this.plot.setSize({ width: Math.max(200, this.place.clientWidth), height: HEIGHT });
  }
}
