/** Any history becomes a request that the Gemini API accepts: the documented rules of `contents`. */
import { toRequest } from "../../modules/provider-gemini/request.ts";
import { testHistories } from "./providers/histories.ts";
import { checkGemini } from "./providers/request_rules.ts";

for (const [model, signs] of [["gemini-3.8-flash", true], ["gemini-2.5-flash", false]] as const) {
  testHistories(
    "gemini",
    (call) => toRequest(call, { include_thoughts: true }),
    (body) => checkGemini(body, signs),
    { model },
  );
}
