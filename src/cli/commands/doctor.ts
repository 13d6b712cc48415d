/** `preamp doctor`: describes this process and its host as a server would find them. */
import { createRuntime } from "../../app/runtime.ts";
import type { SystemReport } from "../../app/types.ts";
import { errorMessage } from "../../sdk/errors.ts";
import { formatFlags } from "../arguments.ts";
import type { Command } from "../commands.ts";
import { EXIT } from "../errors.ts";
import { openSettingsStore } from "../../settings/settings.ts";
import { reportedSettings, settingFlags, type Settings } from "../settings.ts";
import { tableText } from "../terminal/format.ts";
import type { Io } from "../terminal/io.ts";

export const command: Command = {
  usage: "doctor [flags]",
  summary:
    "Describes this host: versions, store, isolation tiers, permissions, keys, memory. Exits 1 on warnings.",
  flags: [
    ...settingFlags(["store"]),
    ...formatFlags({ help: "text (default), or the object that GET /v1/system answers" }),
  ],
  details: () => `Opens the store that preamp serve would use. Names variables, never their values.\n`,
  max_arguments: 0,
  async run(args, io) {
    const report = await describeHost(await reportedSettings(args, io), io);
    return { data: report, text: reportText(report), exit: report.ok ? EXIT.done : EXIT.failed };
  },
};

/** Returns the report of a runtime with the settings. A store that cannot be opened is a warning. */
async function describeHost(settings: Settings, { env }: Io): Promise<SystemReport> {
  const { store, warning } = await openSettingsStore(settings, true).catch((error) => ({
    store: undefined,
    warning: errorMessage(error),
  }));
  const { policy, home } = settings;
  await using runtime = createRuntime({ policy, home, env, ...(store ? { store } : {}) });
  const report = await runtime.system();
  return warning === null ? report : { ...report, ok: false, warnings: [warning, ...report.warnings] };
}

function reportText({ warnings, version, store, isolation, bundler, ...rest }: SystemReport): string {
  const { permissions, variables, clock, memory } = rest;
  const { preamp, deno, v8, target, compiled } = version;
  const list = (names: readonly string[]) => names.join(", ") || "-";
  const permitted = (state: string) =>
    list(Object.entries(permissions).filter((entry) => entry[1] === state).map(([name]) => name));
  const keys = (wanted: boolean) =>
    list(variables.filter(({ set }) => set === wanted).map(({ name }) => name));
  const limits = isolation.process === true ? isolation.limits ?? "operating system and watchdog" : "-";
  const rows = [
    ["preamp", `${preamp}${compiled ? ", compiled" : ""} (deno ${deno}, v8 ${v8}, ${target})`],
    ["store", `${store.kind}: ${store.ok ? "ok" : store.reason ?? "does not answer"}`],
    ["tier process", answerText(isolation.process)],
    ["process limits", limits],
    ["bundler", answerText(bundler)],
    ["granted", permitted("granted")],
    ["granted in part", permitted("partial")],
    ["not granted", permitted("denied")],
    ["keys set", keys(true)],
    ["keys not set", keys(false)],
    ["clock", clock],
    ["memory", memoryText(memory)],
  ];
  const found = warnings.map((text) => `warning: ${text}\n`).join("");
  return `${tableText(rows)}\n${found || "no warnings\n"}`;
}

function answerText(answer: true | string): string {
  return answer === true ? "yes" : `no: ${answer}`;
}

function memoryText({ rss_bytes, total_bytes, available_bytes }: SystemReport["memory"]): string {
  const mebibytes = (bytes: number) => `${Math.round(bytes / 1024 / 1024)} MiB`;
  const used = `${mebibytes(rss_bytes)} used by this process`;
  return total_bytes === null || available_bytes === null
    ? used
    : `${used}, ${mebibytes(available_bytes)} of ${mebibytes(total_bytes)} available`;
}
