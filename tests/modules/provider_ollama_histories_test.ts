/**
 * Any history becomes a request that an Ollama server accepts: calls and results are paired, content is text.
 */
import { toRequest } from "../../modules/provider-ollama/request.ts";
import { testHistories } from "./providers/histories.ts";
import { checkOllama } from "./providers/request_rules.ts";

testHistories("ollama", (call) => toRequest(call, { windowOf: () => 16_384, options: {} }), checkOllama);
