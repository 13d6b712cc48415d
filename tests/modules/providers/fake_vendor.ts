/** Servers that answer in the wire format of a vendor, for plans that name the provider of a vendor. */
import { isObject, type JsonObject } from "preamp";
import { ANTHROPIC } from "./anthropic_wire.ts";
import { type FakeServer, fakeServer, type ReceivedRequest } from "./fake_server.ts";
import type { FakeAnswer, Vendor } from "./faults.ts";
import { GEMINI } from "./gemini_wire.ts";
import { OLLAMA } from "./ollama_wire.ts";
import { OTHER_VENDORS } from "./other_vendors.ts";
import { RESPONSES } from "../provider_openai/vendors.ts";

/** Vendors by the id of their module. */
export const VENDORS: Readonly<Record<string, Vendor>> = {
  "provider-anthropic": ANTHROPIC,
  "provider-gemini": GEMINI,
  "provider-ollama": OLLAMA,
  "provider-openai": RESPONSES,
  ...OTHER_VENDORS,
};

/** Starts a server that gives each request the next answer, and the last one again when there are no more. */
export function fakeVendor(vendor: Vendor, answers: readonly FakeAnswer[]): FakeServer {
  return fakeServer((request, count) => {
    const answer = answers[Math.min(count, answers.length - 1)]!; // a test gives at least one
    if (!isStreamed(request)) return Response.json(vendor.whole(answer));
    return new Response(vendor.events(answer).join(""), { headers: { "content-type": vendor.stream_type } });
  });
}

function isStreamed({ path, body }: ReceivedRequest): boolean {
  return body?.stream === true || path.includes(":streamGenerateContent");
}

/** Returns the id of the module of the plan's first provider. */
export function providerOf(plan: JsonObject): string {
  const [first] = Array.isArray(plan.providers) ? plan.providers : [];
  return String(isObject(first) ? first.module : first);
}

/** Returns the config of a vendor's provider for a server at this address. */
export function configOn(url: string, vendor: Vendor): JsonObject {
  return { ...vendor.config, api_key: "sk-test", base_url: url + (vendor.base_path ?? "") };
}

/** Returns the plan with its first provider on another server. */
export function onServer(plan: JsonObject, vendor: Vendor, url: string): JsonObject {
  const [first, ...others] = plan.providers as JsonObject[];
  const entry = isObject(first) ? first : { module: first };
  const config = { ...(isObject(entry.config) ? entry.config : {}), ...configOn(url, vendor) };
  return { ...plan, providers: [{ ...entry, config }, ...others] };
}
