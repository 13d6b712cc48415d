/** A tool in one file. It imports `preamp`, which the runtime provides. */
import { type Coordinator, defineTool, type ModuleInfo, z } from "preamp";

export const module: ModuleInfo = {
  id: "tool-roman",
  type: "tool",
  version: "1.0.0",
  description: "Writes numbers as Roman numerals.",
};

const SYMBOLS: readonly (readonly [string, number])[] = [
  ["M", 1000],
  ["CM", 900],
  ["D", 500],
  ["CD", 400],
  ["C", 100],
  ["XC", 90],
  ["L", 50],
  ["XL", 40],
  ["X", 10],
  ["IX", 9],
  ["V", 5],
  ["IV", 4],
  ["I", 1],
];

const roman = defineTool({
  name: "roman",
  description: "Writes a number as a Roman numeral.",
  input: z.object({ number: z.int().min(1).max(3999) }),
  execute({ number }) {
    let rest = number;
    let numeral = "";
    for (const [symbol, value] of SYMBOLS) {
      for (; rest >= value; rest -= value) numeral += symbol;
    }
    return numeral;
  },
});

/** Mounts the tool. */
export async function mount(coordinator: Coordinator): Promise<void> {
  await coordinator.mount("tools", roman);
}
