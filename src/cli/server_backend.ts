/** What `serve` has behind its pass: the runtime on this process's settings, with its routes. */
import { KeyRing } from "../policy/api_keys.ts";
import type { Redactor } from "../policy/redact.ts";
import { authenticateWith } from "../server/auth.ts";
import { type Backend, createBackend, type PreampOptions } from "../server/mod.ts";
import type { Log } from "./log.ts";
import type { Settings } from "./settings.ts";
import type { Welcome } from "./terminal/startup_banner.ts";

/** What it is made of. */
export interface BackendParts {
  settings: Settings;
  auth: Welcome["auth"];
  /** Values that must never be seen. */
  secrets: Redactor;
  log: Log;
}

/** Returns it. */
export function openBackend({ settings, auth, secrets, log }: BackendParts): Backend {
  const ring = new KeyRing(settings.policy.auth.keys, auth.kind === "generated" ? auth.key : undefined);
  return createBackend({
    ...ownOptions(settings, secrets, log),
    authenticate: auth.kind === "none" ? null : authenticateWith(ring),
  });
}

/** Returns what every server of this process is made of, whoever listens for it. */
export function ownOptions(
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
