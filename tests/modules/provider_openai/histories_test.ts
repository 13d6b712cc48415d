/**
 * Any history becomes a request that both APIs accept: roles, pairs of calls and results, no empty content.
 */
import { OpenAIBackend } from "../../../modules/provider-openai/backend.ts";
import { testHistories } from "../providers/histories.ts";
import { checkChat, checkResponses } from "../providers/request_rules.ts";
import { settingsOf } from "./bodies.ts";

for (const model of ["gpt-4.1", "gpt-6.1-terra"]) { // without and with cache breakpoints
  testHistories(
    "openai",
    (call) => new OpenAIBackend(settingsOf({}), "ses_1").toRequest(call),
    checkResponses,
    { model },
  );
}
testHistories(
  "openai",
  (call) => new OpenAIBackend(settingsOf({ base_url: "http://localhost/v1" }), "ses_1").toRequest(call),
  checkChat,
);
