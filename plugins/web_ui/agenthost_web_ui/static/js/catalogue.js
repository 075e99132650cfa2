/** The models that an agent may be given, those that can be used at once first. */

const byLabel = (one, other) => one.label.localeCompare(other.label, "en");

/**
 * Group models by their provider.
 * @param {Array<object>} models of `GET /api/models`
 * @param {Array<object>} providers of `GET /api/providers`; one that is not listed is
 *   known by its models alone
 * @returns {Array<{provider: string, label: string, usable: boolean, variable?: string,
 *   models: Array<object>}>} usable providers first, each kind by name
 */
export function groupModels(models, providers) {
  const known = new Map(providers.map((provider) => [provider.name, provider]));
  const groups = [...Map.groupBy(models, ({ provider }) => provider)].map(([name, members]) =>
    groupOf(name, members, known.get(name)),
  );
  const [usable, missing] = [true, false].map((kind) =>
    groups.filter((group) => group.usable === kind).sort(byLabel),
  );
  return [...usable, ...missing];
}

function groupOf(name, members, provider) {
  const usable = provider
    ? provider.auth_status !== "missing"
    : members.some(({ available = true }) => available);
  const models = members
    .map(({ id, display_name }) => ({ id, label: display_name ?? id }))
    .sort(byLabel);
  const label = provider?.display_name ?? name;
  return { provider: name, label, usable, variable: provider?.env_var, models };
}
