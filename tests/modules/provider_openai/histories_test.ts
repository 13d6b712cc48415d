/**
 * Any history becomes a request that both APIs accept: roles, pairs of calls and results, no empty content.
 */
import { OpenAIBackend } from "../../../modules/provider-openai/backend.ts";
import { testHistories } from "../providers/histories.ts";
import { checkChat, checkResponses } from "../providers/request_rules.ts";
import { settingsOf } from "./bodies.ts";

testHistories("openai", (call) => new OpenAIBackend(settingsOf({}), "ses_1").toRequest(call), checkResponses);
testHistories(
  "openai",
  (call) => new OpenAIBackend(settingsOf({ base_url: "http://localhost/v1" }), "ses_1").toRequest(call),
  checkChat,
);
