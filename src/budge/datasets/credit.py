"""Credit: German credit in the paper's 36 features, and Taiwan's card clients."""

from __future__ import annotations

import os

import pandas as pd

from budge.datasets.dataset import Dataset
from budge.datasets.files import SOURCES, raw

__all__ = ["german", "taiwan"]


def german(*, path: str | os.PathLike[str] | None = None) -> Dataset:
    """Statlog German credit: 1000 applicants, the 36 features of the paper's table, in its order.

    Outcome ``good``: 1 is a good customer. Amounts are in Deutsche Mark; the paper's names keep their ``K``.

    Parameters
    ----------
    path : path, optional
        ``german_credit.csv`` or its folder.

    Examples
    --------
    >>> from budge import datasets
    >>> datasets.german().X.shape       # doctest: +SKIP
    (1000, 36)
    """
    table = raw("german_credit", path=path)
    return Dataset(
        "german",
        _encode_german(table),
        (table["credit_risk"] == 1).astype("int64").rename("good"),
        "Credit applicants in Germany, 1994; 1 is a good customer, 0 a bad one",
        SOURCES["german_credit"].origin,
        SOURCES["german_credit"].licence,
    )


def _encode_german(table: pd.DataFrame) -> pd.DataFrame:
    def is_in(column: str, *codes: str) -> pd.Series:
        return table[column].isin(codes)

    columns = {
        "Age": table["age"],
        "YearsAtResidence": table["residence_since"],
        "YearsEmployed>=1": is_in("employment", "A73", "A74", "A75"),
        "CheckingAcct_exists": table["checking_acct"] != "A14",
        "CheckingAcct>=0": is_in("checking_acct", "A12", "A13"),
        "SavingsAcct_exists": table["savings_acct"] != "A65",  # A65 is "unknown or none"
        "SavingsAcct>=100": is_in("savings_acct", "A62", "A63", "A64"),
        "Male": is_in("personal_status", "A91", "A93", "A94"),
        "Single": is_in("personal_status", "A93", "A95"),
        "ForeignWorker": table["foreign_worker"] == "A201",
        "LiablePersons": table["liable_persons"],
        "Housing=Renter": table["housing"] == "A151",
        "Housing=Owner": table["housing"] == "A152",
        "Housing=Free": table["housing"] == "A153",
        "Job=Unskilled": is_in("job", "A172"),  # A171, "unemployed or unskilled non-resident", is none of the three
        "Job=Skilled": table["job"] == "A173",
        "Job=Management": table["job"] == "A174",
        **{f"CreditAmt>={amount}K": table["credit_amt"] >= amount for amount in (1000, 2000, 5000, 10000)},
        "LoanDuration<=6": table["duration"] <= 6,
        **{f"LoanDuration>={months}": table["duration"] >= months for months in (12, 24, 36)},
        "LoanRate": table["installment_rate"],
        "HasGuarantor": table["other_debtors"] == "A103",
        "LoanRequiredForBusiness": table["purpose"] == "A49",
        "LoanRequiredForEducation": is_in("purpose", "A46", "A48"),
        "LoanRequiredForCar": is_in("purpose", "A40", "A41"),
        "LoanRequiredForHome": is_in("purpose", "A42", "A43", "A44", "A45"),
        "NoCreditHistory": table["credit_history"] == "A30",
        "HistoryOfLatePayments": table["credit_history"] == "A33",
        "HistoryOfDelinquency": table["credit_history"] == "A34",
        "HistoryOfBankInstallments": table["other_installments"] == "A141",
        "HistoryOfStoreInstallments": table["other_installments"] == "A142",
    }
    return pd.DataFrame(columns).astype("int64")


def taiwan(*, path: str | os.PathLike[str] | None = None) -> Dataset:
    """Default of credit card clients in Taiwan, 2005: 30,000 clients, 23 features as published.

    Outcome ``default``: 1 is a default in the next month.

    Parameters
    ----------
    path : path, optional
        ``taiwan_credit.csv`` or its folder.
    """
    table = raw("taiwan_credit", path=path)
    return Dataset(
        "taiwan",
        table.drop(columns=["ID", "default payment next month"]),
        table["default payment next month"].rename("default"),
        "Credit card clients in Taiwan, 2005; 1 is a default in the next month",
        SOURCES["taiwan_credit"].origin,
        SOURCES["taiwan_credit"].licence,
    )
