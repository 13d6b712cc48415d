/**
 * Any history becomes a request that an Ollama server accepts: calls and results are paired, content is text.
 */
import { createBackend } from "../../modules/provider-ollama/backend.ts";
import { testHistories } from "./providers/histories.ts";
import { OLLAMA } from "./providers/ollama_wire.ts";
import { checkOllama } from "./providers/request_rules.ts";

const backend = createBackend({ base_url: "http://localhost" }, { windowOf: () => 16_384, options: {} });
testHistories("ollama", backend, OLLAMA, checkOllama);
