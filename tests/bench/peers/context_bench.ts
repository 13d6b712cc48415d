/**
 * Compares context-simple with the trimmers of other libraries, a simple trimmer and a floor: `deno task bench:peers`.
 * Messages are converted for a library when they are added.
 */
import { BUDGET, measure } from "../context_figures.ts";
import { print, report } from "../figures.ts";
import { floor, ours, simpleTrimmer } from "../trimmers.ts";
import { aiSdk, langchain } from "./peers.ts";

print(`Context, budget of ${BUDGET} tokens; a round of one or two calls and a request each time`);
const figures = await measure([
  ["context-simple", () => ours()],
  ["LangChain trimMessages", langchain],
  ["AI SDK pruneMessages", aiSdk],
  ["simple trimmer", simpleTrimmer],
  ["floor: append, last 100", floor],
]);
report("context-peers", { figures });
