/** The options of every server of this program: under `preamp serve`, `deno serve` and on a host. */
import { missingHome } from "../app/home_report.ts";
import { createModuleTable } from "../app/module_table.ts";
import type { NamedPlans } from "../app/named_plans.ts";
import { formatDetail } from "../plan/check/findings.ts";
import { readModelChoice } from "../plan/model_choice.ts";
import type { Redactor } from "../policy/redact.ts";
import type { PreampError } from "../sdk/errors.ts";
import type { PreampOptions } from "../server/mod.ts";
import { openSettingsStore, type Settings } from "../settings/settings.ts";
import type { Log } from "./log.ts";

/**
 * Opens the store and returns the options of a server. Logs what is wrong with the settings, and which files
 * of the folder are ignored.
 *
 * @param plans The named plans.
 * @param secrets They are redacted everywhere.
 *
 * @throws {UsageError} when the store cannot be opened.
 */
export async function serverOptions(
  settings: Settings,
  plans: NamedPlans,
  secrets: Redactor,
  log: Log,
): Promise<PreampOptions> {
  const { policy, home, workspace, sources, warnings, ignored } = settings;
  if (ignored !== null) log.note("warning", "folder", { message: ignored });
  for (const message of warnings) log.note("warning", "settings", { message });
  const missing = await missingHome(home);
  if (missing !== undefined) log.note("warning", "home", { message: missing });
  checkModel(policy.model, log);
  const started_ms = performance.now();
  const { store, warning } = await openSettingsStore(settings, true, true);
  if (store) {
    const ms = Math.round(performance.now() - started_ms);
    log.note("info", "store_checked", { store: store.kind, ms });
  }
  if (warning !== null) log.note("warning", "store", { message: warning });
  return {
    ...(store ? { store } : {}),
    policy,
    plans,
    home,
    workspace,
    sources,
    secrets,
    log: (record) => log.request(record),
    runtime_log: (level, event, facts) => log.note(level, event, facts),
  };
}

/** Warns of a demo model with an unknown provider: every request without a plan will be refused. */
function checkModel(model: string, log: Log): void {
  try {
    if (model !== "") readModelChoice(model, createModuleTable().ids);
  } catch (error) {
    const [detail] = (error as PreampError).details; // the only error that is thrown there
    log.note("warning", "settings", { message: formatDetail(detail!, "the settings") });
  }
}
