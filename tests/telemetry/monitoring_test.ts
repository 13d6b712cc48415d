import { load } from "js-yaml";
import { METRICS } from "../../src/telemetry/metric_table.ts";
import { assert, assertEquals } from "../assert.ts";

const FILES = ["alerts.yaml", "dashboard.json"];
const textOf = (file: string) =>
  Deno.readTextFile(new URL(`../../src/docs/monitoring/${file}`, import.meta.url));

Deno.test("alert rules and dashboard name metrics and labels that exist", async () => {
  for (const file of FILES) {
    const text = await textOf(file);
    const used = [...text.matchAll(/\b(preamp_\w+|process_resident_memory_bytes)/g)].map(([name]) => name);
    assert(used.length > 0, file);
    const known = (name: string) => Object.hasOwn(METRICS, name.replace(/_(bucket|count|sum)$/, ""));
    assertEquals(used.filter((name) => !known(name)), []);
    const labels = new Set(Object.values(METRICS).flatMap(({ labels }): readonly string[] => labels));
    const by = [...text.matchAll(/by \(([\w, ]+)\)/g)].flatMap(([, names]) => names!.split(", "));
    assertEquals(by.filter((label) => !labels.has(label) && label !== "le" && label !== "instance"), []);
  }
});

Deno.test("the alert rules and the dashboard can be read", async () => {
  const { groups } = load(await textOf("alerts.yaml")) as {
    groups: { rules: { alert: string; expr: string }[] }[];
  };
  assert(groups.flatMap(({ rules }) => rules).every(({ alert, expr }) => alert && expr));
  const { panels } = JSON.parse(await textOf("dashboard.json")) as { panels: { id: number }[] };
  assertEquals(new Set(panels.map(({ id }) => id)).size, panels.length);
});
