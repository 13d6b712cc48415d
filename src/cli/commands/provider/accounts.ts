/** The providers whose keys are set, and the report of calls that failed. */
import { createModuleTable } from "../../../app/module_table.ts";
import { listProviders } from "../../../app/provider_service.ts";
import { UsageError } from "../../arguments.ts";
import { styleOf } from "../../terminal/format.ts";
import type { Io } from "../../terminal/io.ts";
import { messageText } from "../../terminal/progress_lines.ts";

/** A call that failed. */
export interface Failure {
  code: string;
  message: string;
}

/** Returns a line for each failure. */
export function failuresText(failures: readonly Failure[], io: Io): string {
  const { red } = styleOf(io.err);
  return failures.map(({ code, message }) => `${red("error:")} ${messageText(message)} (${code})\n`).join("");
}

/** Resolves to the providers whose key is set. @throws {UsageError} if no key is set. */
export async function providersWithKey(io: Pick<Io, "env">): Promise<string[]> {
  const known = await listProviders({ modules: createModuleTable(), env: io.env });
  const names = known.filter(({ set_variable }) => set_variable !== null).map(({ provider }) => provider);
  if (names.length > 0) return names;
  const variables = known.flatMap(({ variables }) => variables.slice(0, 1)).join(" or ");
  const providers = known.map(({ provider }) => provider).join(", ");
  throw new UsageError(
    `Cannot choose a provider: no key is set; set ${variables}, or name a provider: ${providers}`,
  );
}
