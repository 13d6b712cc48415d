/** The palette: finds runs, sessions, plans, pages and actions by a few letters. */
import { useEffect, useState } from "preact/hooks";
import type { AppState } from "../state/app_state.ts";
import { type Command, findCommands } from "../state/palette.ts";
import { actionCommands, docsCommands, loadCommands } from "./actions.ts";
import { Dialog } from "../ui/dialog.tsx";
import { visible } from "../ui/text.tsx";

/** The dialog: a box to type in, and what was found below it. */
export function Palette({ state }: { state: AppState }) {
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const [commands, setCommands] = useState<readonly Command[]>(() => actionCommands(state));
  const load = async () => setCommands([...commands, ...await loadCommands(state)]);
  useEffect(() => void state.attempt(load), []);
  const [docs, setDocs] = useState<readonly Command[]>([]);
  useEffect(() => {
    let is_current = true;
    docsCommands(state, query).then((docs) => is_current && setDocs(docs), () => {}); // without the docs
    return () => void (is_current = false);
  }, [query]);
  const found = [...findCommands(commands, query, docs.length > 0 ? 8 : 12), ...docs];
  const id = query.trim();
  if (found.length === 0 && /^(run|ses)_\w+$/.test(id)) {
    const run = () => id.startsWith("run") ? state.openRun(id) : state.openSession(id);
    found.push({ kind: id.startsWith("run") ? "run" : "session", label: id, hint: "by its id", run });
  }
  const selected = Math.min(at, found.length - 1);
  const close = () => state.overlay.value = null;
  const choose = (command: Command) => {
    close();
    state.attempt(async () => await command.run());
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const { key } = event;
    const last = found.length - 1;
    if (key === "ArrowDown") setAt(selected >= last ? 0 : selected + 1);
    else if (key === "ArrowUp") setAt(selected <= 0 ? last : selected - 1);
    else if (key === "Enter" && !event.isComposing && found[selected]) choose(found[selected]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog label="Find" onClose={close}>
      <input
        role="combobox"
        aria-label="Find runs, sessions, plans, pages and actions"
        aria-expanded="true"
        aria-controls="found"
        aria-activedescendant={found[selected] && `found-${selected}`}
        aria-autocomplete="list"
        placeholder="find runs, sessions, plans, docs, actions"
        autocomplete="off"
        autofocus
        value={query}
        onInput={(event) => {
          setQuery(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div id="found" class="found" role="listbox" aria-label="Found">
        {found.map((command, index) => (
          <div
            id={`found-${index}`}
            role="option"
            aria-selected={index === selected}
            onClick={() => choose(command)}
            onMouseMove={() => setAt(index)}
            key={index}
          >
            <span class="muted">{command.kind}</span>
            <span dir="auto">{visible(command.label)}</span>
            <span class="muted">{visible(command.hint)}</span>
          </div>
        ))}
      </div>
      {found.length === 0 && <p class="muted" role="status">Nothing has these words.</p>}
    </Dialog>
  );
}
