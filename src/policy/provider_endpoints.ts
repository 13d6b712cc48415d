/**
 * Checks where a caller's provider may send requests. The server's own keys are sent only to the vendors'
 * hosts or where an operator's plan points. A caller that changes the endpoint must bring its own key, and
 * the policy must allow the host.
 */
import { findEnv } from "../plan/env.ts";
import { covers, type FullPermissions } from "../plan/permissions/grants.ts";
import { describe } from "../sdk/value_path.ts";
import type { ErrorDetail } from "../sdk/errors.ts";
import type { ModuleSpec } from "../sdk/plan.ts";

/** Upstream's protected endpoint settings (PROTECTED_CONFIG_KEYS). */
const ENDPOINTS = ["base_url", "api_base", "endpoint", "azure_endpoint", "host", "proxy"] as const;

/** Returns reasons to refuse the endpoints in the config of a caller's module. */
export function endpointReasons(spec: ModuleSpec, max: FullPermissions): ErrorDetail[] {
  if (spec.type !== "provider") return [];
  const reasons: ErrorDetail[] = [];
  for (const key of ENDPOINTS) {
    const value = spec.config[key];
    if (value === undefined || value === null) continue;
    const path = `${spec.path}.config.${key}`;
    const host = typeof value === "string" && findEnv(value).length === 0 ? hostOf(value) : undefined;
    if (host === undefined) {
      reasons.push({
        path,
        message: `Cannot use ${key}: must be a URL without variables`,
        hint: "write https://host/path",
      });
    } else if (!mayReach(host, max.net)) {
      const message = `Cannot reach ${
        describe(host)
      } from a caller's plan: the policy's permissions.max.net does not list it`;
      reasons.push({ path, message, hint: "leave it out to use the vendor's own host" });
    }
    const ownKey = spec.config.api_key;
    if (typeof ownKey !== "string" || ownKey === "" || findEnv(ownKey).length > 0) {
      const message =
        `Cannot use ${key} without a key of your own: the server's key is sent to the vendor's host only`;
      reasons.push({ path, message, hint: "add api_key to the same config" });
    }
  }
  return reasons;
}

/** Returns `host:port` of a URL or of a host; undefined for other text. */
function hostOf(value: string): string | undefined {
  const text = value.includes("://") ? value : `https://${value}`;
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.protocol !== "https:" && url.protocol !== "http:" || url.username || url.password) return undefined;
  return `${url.hostname}:${url.port || (url.protocol === "http:" ? "80" : "443")}`;
}

function mayReach(host: string, net: FullPermissions["net"]): boolean {
  return typeof net === "boolean" ? net : net.some((entry) => covers("net", entry, host));
}
