/** Writes fitted weights into `src/sdk/token_weights.ts`, below the line that says so. */
import type { Weights } from "../../../src/sdk/token_weights.ts";

const MARKER = "/** The fitted costs. */\n";

/** Replaces the tables in the source by these. */
export async function writeWeights(weights: Weights): Promise<void> {
  const file = new URL("../../../src/sdk/token_weights.ts", import.meta.url);
  const source = await Deno.readTextFile(file);
  const [head, ...rest] = source.split(MARKER);
  if (rest.length !== 1) throw new Error("Cannot write the weights: the file must have one marker line");
  const lines = Object.entries(weights).map(([name, table]) => `  ${name}: ${tableText(table)},`);
  await Deno.writeTextFile(
    file,
    `${head}${MARKER}export const WEIGHTS: Weights = {\n${lines.join("\n")}\n};\n`,
  );
}

/** A table of tables has a line for each; everything else stands on one line. */
function tableText(table: object): string {
  if (!Object.values(table).some((value) => typeof value === "object")) return lineOf(table);
  return `{\n${Object.entries(table).map(([key, value]) => `    ${key}: ${lineOf(value)},`).join("\n")}\n  }`;
}

function lineOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.join(", ")}]`;
  const fields = Object.entries(value as object).map(([key, inner]) =>
    `${key}: ${Array.isArray(inner) ? lineOf(inner) : inner}`
  );
  return `{ ${fields.join(", ")} }`;
}
