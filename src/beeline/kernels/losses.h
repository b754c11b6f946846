// Scalar losses l(z, y) in compiled form: value, slope dl/dz and curvature d²l/dz².
//
// A loss with a `conjugate` also has ψ(a) = max over z of −az − c·l(z, y), c > 0; ∞ where a is not feasible.
//
// The NumPy forms in beeline.losses are the definition; a contract test holds the two together.
#pragma once

#include <stdexcept>
#include <string>

#include "loss_parts.h"
#include "margin_losses.h"
#include "regression_losses.h"

namespace beeline {

// visit(loss) with the concrete type of the named loss; `parameters` are its own.
template <class Visit>
auto with_loss(const std::string& name, const Parameters& parameters, Visit visit) {
  if (name == "logistic") return visit(LogisticLoss{});
  if (name == "hinge") return visit(HingeLoss{});
  if (name == "squared_hinge") return visit(SquaredHingeLoss{});
  if (name == "smoothed_hinge") return visit(SmoothedHingeLoss{parameters[0], 1});
  if (name == "huber_hinge") return visit(SmoothedHingeLoss{parameters[0], 1 + 0.5 * parameters[0]});
  if (name == "soft_hinge") return visit(SoftHingeLoss{parameters[0]});
  if (name == "modified_huber") return visit(ModifiedHuberLoss{});
  if (name == "exponential") return visit(ExponentialLoss{});
  if (name == "perceptron") return visit(PerceptronLoss{});
  if (name == "squared_perceptron") return visit(SquaredPerceptronLoss{});
  if (name == "squared") return visit(SquaredLoss{});
  if (name == "absolute") return visit(AbsoluteLoss{});
  if (name == "huber") return visit(HuberLoss{parameters[0]});
  if (name == "pseudo_huber") return visit(PseudoHuberLoss{parameters[0]});
  if (name == "log_cosh") return visit(LogCoshLoss{});
  if (name == "epsilon_insensitive") return visit(EpsilonInsensitiveLoss{parameters[0]});
  if (name == "squared_epsilon_insensitive") return visit(SquaredEpsilonInsensitiveLoss{parameters[0]});
  if (name == "soft_epsilon_insensitive") return visit(SoftTubeLoss{parameters[0], parameters[1]});
  if (name == "quantile") return visit(QuantileLoss{parameters[0]});
  if (name == "soft_quantile") return visit(SoftQuantileLoss{parameters[0], parameters[1]});
  if (name == "expectile") return visit(ExpectileLoss{parameters[0]});
  if (name == "poisson") return visit(PoissonLoss{});
  if (name == "gamma") return visit(GammaLoss{});
  if (name == "tweedie") return visit(TweedieLoss{parameters[0]});
  if (name == "cross_entropy") return visit(CrossEntropyLoss{});
  if (name == "novelty") return visit(NoveltyLoss{parameters[0]});
  throw std::invalid_argument("no compiled loss has the name " + name);
}

}  // namespace beeline
