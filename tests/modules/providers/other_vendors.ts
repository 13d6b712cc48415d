/** The vendors of the table, in the wire formats that they share with OpenAI. */
import type { Module } from "preamp";
import * as azure from "../../../modules/provider-azure/mod.ts";
import * as deepseek from "../../../modules/provider-deepseek/mod.ts";
import * as groq from "../../../modules/provider-groq/mod.ts";
import * as mistral from "../../../modules/provider-mistral/mod.ts";
import * as openrouter from "../../../modules/provider-openrouter/mod.ts";
import * as xai from "../../../modules/provider-xai/mod.ts";
import { CHAT, RESPONSES } from "../provider_openai/vendors.ts";
import { CHAT_USAGE } from "../provider_openai/wire.ts";
import type { Vendor } from "./faults.ts";

/** Mistral sends its usage beside the end of the answer, not in a chunk of its own. */
const MISTRAL: Vendor = {
  ...CHAT,
  events: (answer) =>
    CHAT.events(answer).filter((event) => !event.includes('"choices":[]')).map((event) =>
      event.includes('"finish_reason":"')
        ? event.replace('"usage":null', `"usage":${JSON.stringify(CHAT_USAGE)}`)
        : event
    ),
  end_events: 2,
  spare_events: 1,
};

const ROWS: readonly [name: string, module: Module, wire: Vendor][] = [
  ["azure", azure, RESPONSES],
  ["deepseek", deepseek, CHAT],
  ["groq", groq, CHAT],
  ["mistral", mistral, MISTRAL],
  ["openrouter", openrouter, CHAT],
  ["xai", xai, RESPONSES],
];

/** The vendors by the id of their module. */
export const OTHER_VENDORS: Readonly<Record<string, Vendor>> = Object.fromEntries(
  ROWS.map(([name, module, wire]) => {
    const base_path = name === "azure" ? "" : "/v1";
    return [`provider-${name}`, { ...wire, name, api: name, module, config: {}, base_path }];
  }),
);
