/** The tour of `preamp chat --demo`: a scripted coder mends a small broken project in a temporary folder. */
import type { JsonObject } from "../../sdk/json.ts";
import { planData } from "../plan_files.ts";
import { readCoderPlan } from "./coder_plan.ts";

/** A tour that is ready to be played. */
export interface Demo extends AsyncDisposable {
  /** Folder of the project, ending in a slash; deleted with the tour. */
  readonly folder: URL;
  readonly plan: JsonObject;
  /** The first message, which the tour types itself. */
  readonly prompt: string;
}

const BROKEN = `#!/bin/sh
# Prints the sum of the prices in a file, one a line.
sum=0
while read -r price; do
  sum=$price
done < "$1"
echo "$sum"
`;

const TEST = `#!/bin/sh
# The prices of prices.txt are 42 in all.
total=$(sh total.sh prices.txt)
if [ "$total" = 42 ]; then echo "ok: the total is 42"; else echo "FAILED: the total is $total, not 42"; exit 1; fi
`;

const FILES: Readonly<Record<string, string>> = {
  "total.sh": BROKEN,
  "test.sh": TEST,
  "prices.txt": "12\n25\n5\n",
};

/** Milliseconds before each answer, so that a person can follow. */
const PACE_MS = 600;

const SCRIPT: readonly JsonObject[] = [
  {
    text: "I will look at the project first.",
    tool_calls: [
      { name: "list", arguments: { path: "." } },
      { name: "grep", arguments: { pattern: "sum", path: "total.sh" } },
    ],
  },
  { tool_calls: [{ name: "read", arguments: { path: "total.sh" } }] },
  {
    text: "The loop **replaces** the sum by each price: `sum=$price`. It has to add them up. " +
      "This is the change; I ask before I write it:",
    tool_calls: [{
      name: "edit",
      arguments: { path: "total.sh", old_string: "  sum=$price", new_string: "  sum=$((sum + price))" },
    }],
  },
  {
    text: "Now the test. A command can do anything, so I ask about each one:",
    tool_calls: [{ name: "bash", arguments: { command: "sh test.sh", description: "Run the test" } }],
  },
  {
    text: "That is the tour. If you allowed both steps, the test above says **ok**; " +
      "what you denied was not done, and a real model would have read your reason.\n\n" +
      "Try `/undo`, `/cost`, `/replay` and `/help`. With a key such as `ANTHROPIC_API_KEY`, or a running Ollama, " +
      "`preamp chat` works in your own folder.",
  },
  {
    text: "The script of this tour has ended, so no model reads what you write. " +
      "Leave with Ctrl-D, and start `preamp chat` with a key or a running Ollama.",
  },
];

/** Creates the project in a new temporary folder. Dispose of it. */
export async function createDemo(): Promise<Demo> {
  const { name, text } = await readCoderPlan();
  const coder = await planData(name, text);
  const path = await Deno.makeTempDir({ prefix: "preamp-demo-" });
  const folder = new URL(`file://${path}/`);
  for (const [name, text] of Object.entries(FILES)) await Deno.writeTextFile(new URL(name, folder), text);
  const responses = SCRIPT.map((entry) => ({ ...entry, delay_ms: PACE_MS }));
  return {
    folder,
    plan: {
      ...coder,
      providers: [{ module: "provider-mock", config: { responses, prices: { input: "0", output: "0" } } }],
    },
    prompt: "The test of this project fails. Find out why, and mend it.",
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}
