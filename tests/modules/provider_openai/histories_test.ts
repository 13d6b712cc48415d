/**
 * Any history becomes a request that both APIs accept: roles, pairs of calls and results, no empty content.
 */
import { createBackend } from "../../../modules/ai-sdk/openai.ts";
import { testHistories } from "../providers/histories.ts";
import { checkChat, checkResponses } from "../providers/request_rules.ts";
import { settingsOf } from "./bodies.ts";
import { CHAT, RESPONSES } from "./vendors.ts";

for (const model of ["gpt-4.1", "gpt-6.1-terra"]) { // without and with cache breakpoints
  testHistories("openai", createBackend(settingsOf({})), RESPONSES, checkResponses, { model });
}
testHistories("openai", createBackend(settingsOf({ base_url: "http://localhost/v1" })), CHAT, checkChat);
