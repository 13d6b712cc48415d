/** Colours of a terminal, by meaning; plain text where they are not wanted. */
import type { Output } from "./io.ts";

/** Paints text. */
export interface Style {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
  cyan(text: string): string;
}

/** Returns the style of an output (`NO_COLOR`: no-color.org). */
export function styleOf({ color }: Pick<Output, "color">): Style {
  const paint = (on: number, off: number) => (text: string) =>
    color ? `\x1b[${on}m${text}\x1b[${off}m` : text;
  return {
    bold: paint(1, 22),
    dim: paint(2, 22),
    red: paint(31, 39),
    green: paint(32, 39),
    yellow: paint(33, 39),
    cyan: paint(36, 39),
  };
}
