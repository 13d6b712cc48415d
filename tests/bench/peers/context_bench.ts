/**
 * context-simple against the trimmers of other libraries, R0's example and a floor, in one run: `deno task bench:peers`.
 * Conversion to a library's own messages is done when a message is added, and is not timed against it.
 */
import { BUDGET, measure } from "../context_figures.ts";
import { print, report } from "../figures.ts";
import { floor, ours, r0 } from "../trimmers.ts";
import { aiSdk, langchain } from "./peers.ts";

print(`Context, budget of ${BUDGET} tokens; a round of one or two calls and a request each time`);
const figures = await measure([
  ["context-simple", () => ours()],
  ["LangChain trimMessages", langchain],
  ["AI SDK pruneMessages", aiSdk],
  ["R0's example", r0],
  ["floor: append, last 100", floor],
]);
report("context-peers", { figures });
