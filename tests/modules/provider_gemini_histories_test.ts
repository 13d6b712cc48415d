/** Any history becomes a request that the Gemini API accepts: the documented rules of `contents`. */
import { createBackend } from "../../modules/ai-sdk/google.ts";
import { GEMINI } from "./providers/gemini_wire.ts";
import { testHistories } from "./providers/histories.ts";
import { checkGemini } from "./providers/request_rules.ts";
import { SETTINGS } from "./providers/sent_request.ts";

for (const [model, signs] of [["gemini-3.8-flash", true], ["gemini-2.5-flash", false]] as const) {
  testHistories("gemini", createBackend(SETTINGS), GEMINI, (body) => checkGemini(body, signs), { model });
}
