/** Creates the runtime and the routes of `serve` from the settings of this process. */
import { KeyRing } from "../policy/api_keys.ts";
import type { Redactor } from "../policy/redact.ts";
import { authenticateWith } from "../server/auth.ts";
import { type Backend, createBackend, type PreampOptions } from "../server/mod.ts";
import type { Log } from "./log.ts";
import type { Settings } from "./settings.ts";
import type { StartupBanner } from "./terminal/startup_banner.ts";

/** Options of {@link openBackend}. */
export interface BackendOptions {
  settings: Settings;
  auth: StartupBanner["auth"];
  /** Values to redact everywhere. */
  secrets: Redactor;
  log: Log;
}

/** Creates the backend of `serve`. */
export function openBackend({ settings, auth, secrets, log }: BackendOptions): Backend {
  const ring = new KeyRing(settings.policy.auth.keys, auth.kind === "generated" ? auth.key : undefined);
  return createBackend({
    ...serverOptions(settings, secrets, log),
    authenticate: auth.kind === "none" ? null : authenticateWith(ring),
  });
}

/** Returns the options that every server of this process has, under `serve` and under `deno serve`. */
export function serverOptions(
  { policy, plans, home, sources }: Settings,
  secrets: Redactor,
  log: Log,
): PreampOptions {
  return {
    policy,
    plans,
    home,
    sources,
    secrets,
    log: (record) => log.request(record),
    runtime_log: (level, event, facts) => log.note(level, event, facts),
  };
}
