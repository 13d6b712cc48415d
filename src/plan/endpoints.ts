/** Hosts that the config of a provider names: where the prompts of a plan go. Pure. */
import { describe } from "../sdk/value_path.ts";
import type { ModuleSpec } from "../sdk/plan.ts";
import { findEnv } from "./env.ts";

/** Upstream's protected endpoint settings (PROTECTED_CONFIG_KEYS). */
export const ENDPOINT_KEYS = [
  "base_url",
  "api_base",
  "endpoint",
  "azure_endpoint",
  "host",
  "proxy",
] as const;

/** Returns whether a module calls models: any list of a plan can mount a provider. */
export function isProvider({ module, type }: Pick<ModuleSpec, "module" | "type">): boolean {
  return type === "provider" || module.startsWith("provider-");
}

/** Returns whether a key of a module's config names a host that prompts go to. */
export function isEndpoint(spec: Pick<ModuleSpec, "module" | "type">, key: string): boolean {
  return isProvider(spec) && (ENDPOINT_KEYS as readonly string[]).includes(key);
}

/** Returns `host:port` of a URL or of a host; undefined for other text. */
export function hostOf(value: string): string | undefined {
  const url = URL.parse(value.includes("://") ? value : `https://${value}`);
  if (url?.protocol !== "https:" && url?.protocol !== "http:" || url.username || url.password) {
    return undefined;
  }
  return `${url.hostname}:${url.port || (url.protocol === "http:" ? "80" : "443")}`;
}

/**
 * Returns the host of an endpoint for messages. An address with a variable is displayed as it is written; any
 * other address without a host may have a password.
 */
export function hostText(value: unknown): string {
  if (value === undefined || value === null) return "the vendor's own host";
  if (typeof value === "string" && findEnv(value).length > 0) return describe(value);
  const host = typeof value === "string" ? hostOf(value) : undefined;
  return host === undefined ? "an address that is no URL" : describe(host);
}
